"""The shared model in gluon; its weights are one vector, as in `cnn`."""

from typing import Any

import mxnet as mx
import numpy as np

from . import cnn


def build(vector: Any) -> Any:
    """Returns the network with these weights, float32 [cnn.NUM_PARAMETERS]."""
    layers = mx.gluon.nn
    net = layers.HybridSequential()
    for into, out in cnn.CONVOLUTIONS:
        net.add(layers.Conv2D(out, cnn.KERNEL, in_channels=into, activation="relu"), layers.MaxPool2D(2))
    for into, out in cnn.LAYERS[:-1]:
        net.add(layers.Dense(out, in_units=into, activation="relu"))
    into, out = cnn.LAYERS[-1]
    net.add(layers.Dense(out, in_units=into))
    net.initialize()
    load(net, vector)
    net.hybridize()
    return net


def weights(net: Any) -> Any:
    """Returns all weights, float32 [cnn.NUM_PARAMETERS], in the order of the layers."""
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


def logits(net: Any, images: Any) -> Any:
    """Returns what the network makes of images [N, 1, 28, 28], float32 [N, 10]."""
    return net(mx.nd.array(images)).asnumpy()
