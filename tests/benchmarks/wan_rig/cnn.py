"""The model that all systems train: the small network of GeoMX's MNIST examples, 178,762 parameters.

Two convolutions of 5 x 5 (16 and 32 channels), each followed by the maximum of 2 x 2, then layers of 256, 128
and 10: 28 -> 24 -> 12 -> 8 -> 4, so that 32 * 4 * 4 = 512 numbers enter the first of them. Each but the last
is followed by max(x, 0). Knows no framework; each has a module that makes it.
"""

from typing import Any

import numpy as np

NUM_PARAMETERS = 178_762
KERNEL = 5
"""Height and width of a convolution's kernel."""
CONVOLUTIONS = ((1, 16), (16, 32))
"""Channels into and out of each."""
LAYERS = ((512, 256), (256, 128), (128, 10))
"""Numbers into and out of each."""
_XAVIER_MAGNITUDE = 3.0


def initial_weights(seed: int) -> Any:
    """Returns the initial weights, the same for all frameworks, float32 [NUM_PARAMETERS].

    Layer by layer, of each the kernel [out, in, height, width] or the matrix [out, in], then a bias of zeros.
    Drawn evenly from a range by the numbers in and out (Glorot and Bengio, 2010), as MXNet's examples do.

    Args:
        seed: other numbers give other weights.
    """
    generator = np.random.default_rng(seed)
    shapes = [(out, into, KERNEL, KERNEL) for into, out in CONVOLUTIONS]
    shapes += [(out, into) for into, out in LAYERS]
    parts = []
    for out, into, *kernel in shapes:
        bound = np.sqrt(_XAVIER_MAGNITUDE / (np.prod(kernel) * (into + out) / 2))
        parts += [generator.uniform(-bound, bound, (out, into, *kernel)).ravel(), np.zeros(out)]
    return np.concatenate(parts).astype(np.float32)
