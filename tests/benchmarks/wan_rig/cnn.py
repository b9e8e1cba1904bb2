"""The model that all systems train: the small network of GeoMX's MNIST examples, 178,762 parameters.

Two convolutions of 5 x 5 (16 and 32 channels), each followed by the maximum of 2 x 2, then layers of 256, 128
and 10: 28 -> 24 -> 12 -> 8 -> 4, so that 32 * 4 * 4 = 512 numbers enter the first of them.
"""

from typing import Any

import mxnet as mx
import numpy as np

NUM_PARAMETERS = 178_762


def build(seed: int) -> Any:
    """Returns the network with initial weights that depend on the seed only."""
    mx.random.seed(seed)
    np.random.seed(seed)  # initializers of MXNet draw from either
    layers = mx.gluon.nn
    net = layers.HybridSequential()
    net.add(
        layers.Conv2D(16, 5, in_channels=1, activation="relu"),
        layers.MaxPool2D(2),
        layers.Conv2D(32, 5, in_channels=16, activation="relu"),
        layers.MaxPool2D(2),
        layers.Dense(256, in_units=512, activation="relu"),
        layers.Dense(128, in_units=256, activation="relu"),
        layers.Dense(10, in_units=128),
    )
    net.initialize(mx.initializer.Xavier())
    net.hybridize()
    return net


def weights(net: Any) -> Any:
    """Returns all weights, float32 [NUM_PARAMETERS], in the order of the layers."""
    parameters = net.collect_params().values()
    return np.concatenate([parameter.data().asnumpy().ravel() for parameter in parameters])


def load(net: Any, vector: Any) -> None:
    """Gives the network the weights that `weights` returned."""
    begin = 0
    for parameter in net.collect_params().values():
        size = int(np.prod(parameter.shape))
        part = np.ascontiguousarray(vector[begin : begin + size].reshape(parameter.shape))
        parameter.set_data(mx.nd.from_numpy(part))
        begin += size


def accuracy(net: Any, images: Any, labels: Any) -> float:
    """Returns the share of images [N, 1, 28, 28] whose class is found."""
    found = net(mx.nd.array(images)).argmax(axis=1).asnumpy()
    return float((found == labels).mean())
