"""The images that all systems train on, and which of them each worker has.

The folder holds the 10,000 test images of MNIST (LeCun et al., 1998) as `t10k-images-idx3-ubyte.gz` and
`t10k-labels-idx1-ubyte.gz`: the first 8,000 train, the last 2,000 test.
"""

import gzip
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from geokfp.components._files import InputError

NUM_IMAGES, NUM_TRAIN = 10_000, 8_000
SPLITS = ("iid", "by_class")
"""How sites differ: not at all, or each class of images is found at one site only."""
_IMAGES, _LABELS = "t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz"
_SHARES_SEED = 0
"""Every run gives a worker the same images, whatever the run's own seed."""


@dataclass(frozen=True, slots=True)
class Samples:
    """Images and their classes."""

    images: Any
    """Float32 [N, 1, 28, 28], from 0 to 1."""
    labels: Any
    """Float32 [N], whole numbers from 0 to 9."""

    def of(self, indices: Any) -> "Samples":
        """Returns some of the samples."""
        return Samples(self.images[indices], self.labels[indices])

    @classmethod
    def blank(cls, number: int) -> "Samples":
        """Returns empty images, on which a framework can set itself up."""
        return cls(np.zeros((number, 1, 28, 28), np.float32), np.zeros(number, np.float32))

    @classmethod
    def joined(cls, parts: Sequence["Samples"]) -> "Samples":
        """Returns all samples of the parts, in their order."""
        images, labels = zip(*((part.images, part.labels) for part in parts), strict=True)
        return cls(np.concatenate(images), np.concatenate(labels))


def read(folder: Path) -> tuple[Samples, Samples]:
    """Reads the images to train on and those to test on.

    Raises:
        InputError: a file is missing or has another shape.
    """
    images = _read_idx(folder / _IMAGES, (NUM_IMAGES, 28, 28)).astype(np.float32)[:, None] / 255
    labels = _read_idx(folder / _LABELS, (NUM_IMAGES,)).astype(np.float32)
    everything = Samples(images, labels)
    return everything.of(slice(NUM_TRAIN)), everything.of(slice(NUM_TRAIN, None))


def share(labels: Any, split: str, site: tuple[int, int], worker: tuple[int, int]) -> Any:
    """Returns the training images of one worker.

    Args:
        labels: classes [N] of all training images.
        split: one of `SPLITS`; `by_class` gives class c to site c modulo the number of sites.
        site: number of the site, and of how many.
        worker: number of the worker in its site, and of how many.

    Returns:
        Indices, in no order of classes; workers of a site have parts of one size, but for one image.
    """
    order = np.random.default_rng(_SHARES_SEED).permutation(len(labels))
    by_class = labels[order].astype(int) % site[1] == site[0]
    own = order[by_class] if split == "by_class" else order[site[0] :: site[1]]
    return own[worker[0] :: worker[1]]


def batches(samples: Samples, size: int, seed: int) -> Iterator[Samples]:
    """Yields batches for ever: each epoch in an order of its own, without the rest that fills no batch."""
    generator = np.random.default_rng(seed)
    while True:
        order = generator.permutation(len(samples.labels))
        for begin in range(0, len(order) - size + 1, size):
            yield samples.of(order[begin : begin + size])


def _read_idx(path: Path, shape: tuple[int, ...]) -> Any:
    try:
        data = gzip.decompress(path.read_bytes())
    except (OSError, EOFError) as error:
        raise InputError(f"--data has no readable {path.name}: {error}") from None
    head = struct.Struct(f">{1 + len(shape)}I")
    expected = head.pack(0x0800 + len(shape), *shape)
    if data[: head.size] != expected or len(data) != head.size + np.prod(shape):
        raise InputError(f"--data has a {path.name} of another shape, allowed: {shape} unsigned bytes")
    return np.frombuffer(data, np.uint8, offset=head.size).reshape(shape)
