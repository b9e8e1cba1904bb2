"""The shared model in torch; its weights are one vector, as in `cnn`."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from . import cnn


def build(vector: Any) -> nn.Sequential:
    """Returns the network with these weights, float32 [cnn.NUM_PARAMETERS]."""
    layers: list[nn.Module] = []
    for into, out in cnn.CONVOLUTIONS:
        layers += [nn.Conv2d(into, out, cnn.KERNEL), nn.ReLU(), nn.MaxPool2d(2)]
    layers.append(nn.Flatten())
    for into, out in cnn.LAYERS:
        layers += [nn.Linear(into, out), nn.ReLU()]
    net = nn.Sequential(*layers[:-1])
    nn.utils.vector_to_parameters(torch.from_numpy(np.array(vector)), net.parameters())
    return net


def flat(tensors: Iterable[Tensor]) -> Any:
    """Returns tensors as one vector, those of the network as float32 [cnn.NUM_PARAMETERS]."""
    return torch.cat([tensor.detach().flatten() for tensor in tensors]).numpy()


@torch.no_grad()
def logits(net: nn.Module, images: Any) -> Any:
    """Returns what the network makes of images [N, 1, 28, 28], float32 [N, 10]."""
    return net(torch.from_numpy(images)).numpy()
