"""Hyperparameters of the built-in algorithms: names, and what each may be. Loads no torch."""

import math
from collections.abc import Callable, Mapping
from typing import Any

from .._files import InputError
from ..training.model_options import is_number, is_whole


def _above_0(value: Any) -> bool:
    return is_number(value) and 0 < value < math.inf


def _from_0(value: Any) -> bool:
    return is_number(value) and 0 <= value < math.inf


def _share(value: Any) -> bool:
    return is_number(value) and 0 <= value < 1


def _count(value: Any) -> bool:
    return is_whole(value) and value >= 1


def _image_shape(value: Any) -> bool:
    return isinstance(value, list | tuple) and len(value) in (0, 2, 3) and all(_count(each) for each in value)


Check = tuple[Callable[[Any], bool], str]
RATE: Check = (_above_0, "a number above 0")
DECAY: Check = (_from_0, "a number from 0 on")
SHARE: Check = (_share, "a number from 0 to below 1")
COUNT: Check = (_count, "a whole number from 1 on")
IMAGE: Check = (_image_shape, "[], [height, width] or [channels, height, width]")

HYPERPARAMETERS: Mapping[str, Mapping[str, Check]] = {
    "softmax_regression": {"learning_rate": RATE, "weight_decay": DECAY},
    "mlp": {
        "hidden_size": COUNT,
        "num_layers": COUNT,
        "dropout": SHARE,
        "learning_rate": RATE,
    },
    "cnn": {
        "channels": COUNT,
        "image_shape": IMAGE,
        "dropout": SHARE,
        "learning_rate": RATE,
    },
}
"""What `hyperparameters` may hold, by algorithm."""


def check_hyperparameters(algorithm: str, hyperparameters: Mapping[str, Any]) -> None:
    """Checks the hyperparameters of a built-in algorithm before anything is built.

    Args:
        algorithm: one of `HYPERPARAMETERS`.
        hyperparameters: what the user gave; whole numbers may come as floats.

    Raises:
        InputError: one that the algorithm has not, or a value that is not allowed.
    """
    allowed = HYPERPARAMETERS[algorithm]
    for name, value in hyperparameters.items():
        if name not in allowed:
            raise InputError(f"hyperparameters has {name!r}; allowed with {algorithm}: {', '.join(allowed)}")
        fits, what = allowed[name]
        if not fits(value):
            raise InputError(f"hyperparameters: {name} is {value!r}; allowed: {what}")
