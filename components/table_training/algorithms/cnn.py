"""A small convolutional network for images (LeCun et al. 1998): two pooled 3x3 layers, a linear one, Adam."""

import math
from collections.abc import Sequence

import torch
from torch import nn

from ..._files import InputError


def build(
    feature_shape: tuple[int, ...],
    num_classes: int,
    *,
    channels: int = 16,
    image_shape: Sequence[int] = (),
    dropout: float = 0.0,
    learning_rate: float = 0.005,
) -> tuple[nn.Module, nn.Module, torch.optim.Optimizer]:
    """Builds the network.

    Args:
        feature_shape: of one row.
        num_classes: number of classes; 0 for regression, by squared error.
        channels: of the first layer; the second has twice as many.
        image_shape: `[height, width]` or `[channels, height, width]` of the image that a row's values are;
            empty where the rows have that shape.
        dropout: share of the values zeroed in training before the linear layer.
        learning_rate: step size of Adam.

    Returns:
        Model [n, *feature_shape] -> [n, num_classes] (or [n, 1]), loss, optimizer.

    Raises:
        InputError: a row is no image of at least 4 x 4 pixels.
    """
    colours, height, width = _image(feature_shape, tuple(image_shape))
    model = nn.Sequential(
        nn.Flatten(),
        nn.Unflatten(1, (colours, height, width)),
        nn.Conv2d(colours, channels, kernel_size=3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(channels, 2 * channels, kernel_size=3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Dropout(dropout),
        nn.Linear(2 * channels * (height // 4) * (width // 4), max(num_classes, 1)),
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=learning_rate)
    return model, nn.CrossEntropyLoss() if num_classes else nn.MSELoss(), optimizer


def _image(feature_shape: tuple[int, ...], image_shape: tuple[int, ...]) -> tuple[int, int, int]:
    shape = image_shape or feature_shape
    fits = len(shape) in (2, 3) and min(shape[-2:]) >= 4 and math.prod(shape) == math.prod(feature_shape)
    if not fits:
        given = f"image_shape {list(image_shape)}" if image_shape else "no image_shape"
        raise InputError(
            f"algorithm 'cnn': rows of shape {list(feature_shape)} with {given}, allowed: "
            "[height, width] or [channels, height, width] of as many values, at least 4 x 4 pixels"
        )
    colours = shape[0] if len(shape) == 3 else 1
    return colours, shape[-2], shape[-1]
