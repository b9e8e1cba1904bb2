"""A multilayer perceptron (Rumelhart, Hinton & Williams 1986) with rectified units and Adam."""

import itertools
import math

import torch
from torch import nn


def build(
    feature_shape: tuple[int, ...],
    num_classes: int,
    *,
    hidden_size: int = 64,
    num_layers: int = 2,
    dropout: float = 0.0,
    learning_rate: float = 0.005,
) -> tuple[nn.Module, nn.Module, torch.optim.Optimizer]:
    """Builds the network.

    Args:
        feature_shape: of one row; its values are taken as they lie.
        num_classes: number of classes; 0 for regression, by squared error.
        hidden_size: width of the inner layers.
        num_layers: linear layers, the last one included.
        dropout: share of the hidden values zeroed in training.
        learning_rate: step size of Adam.

    Returns:
        Model [n, *feature_shape] -> [n, num_classes] (or [n, 1]), loss, optimizer.
    """
    widths = [math.prod(feature_shape), *[hidden_size] * (num_layers - 1), max(num_classes, 1)]
    layers: list[nn.Module] = [nn.Flatten()]
    for index, (width, next_width) in enumerate(itertools.pairwise(widths)):
        if index:
            layers += [nn.ReLU(), nn.Dropout(dropout)]
        layers.append(nn.Linear(width, next_width))
    model = nn.Sequential(*layers)
    optimizer = torch.optim.Adam(model.parameters(), lr=learning_rate)
    return model, nn.CrossEntropyLoss() if num_classes else nn.MSELoss(), optimizer
