"""Softmax regression: one linear layer, cross-entropy (Cox 1958, for several classes), Adam."""

import math

import torch
from torch import nn

from ..._files import InputError


def build(
    feature_shape: tuple[int, ...],
    num_classes: int,
    *,
    learning_rate: float = 0.01,
    weight_decay: float = 0.0,
) -> tuple[nn.Module, nn.Module, torch.optim.Optimizer]:
    """Builds the classifier.

    Args:
        feature_shape: of one row; its values are taken as they lie.
        num_classes: number of classes.
        learning_rate: step size of Adam.
        weight_decay: L2 penalty of Adam.

    Returns:
        Model [n, *feature_shape] -> logits [n, num_classes], loss, optimizer.

    Raises:
        InputError: the task is regression.
    """
    if not num_classes:
        raise InputError(
            "algorithm 'softmax_regression': is for classification, allowed for regression: mlp, cnn"
        )
    model = nn.Sequential(nn.Flatten(), nn.Linear(math.prod(feature_shape), num_classes))
    optimizer = torch.optim.Adam(model.parameters(), lr=learning_rate, weight_decay=weight_decay)
    return model, nn.CrossEntropyLoss(), optimizer
