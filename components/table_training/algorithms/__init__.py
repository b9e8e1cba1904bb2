"""The built-in algorithms, of torch: one a file, chosen by name. None knows anything of sites.

Each has a `build(feature_shape, num_classes, **hyperparameters)` as a user's own would be.
"""

from collections.abc import Callable, Mapping
from typing import Any

from . import cnn, mlp, softmax_regression

ALGORITHMS: Mapping[str, Callable[..., Any]] = {
    "softmax_regression": softmax_regression.build,
    "mlp": mlp.build,
    "cnn": cnn.build,
}


def build(
    algorithm: str, feature_shape: tuple[int, ...], num_classes: int, hyperparameters: Mapping[str, Any]
) -> tuple[Any, Any, Any]:
    """Builds model, loss and optimizer of a built-in algorithm.

    Args:
        algorithm: one of `ALGORITHMS`.
        feature_shape: of one row.
        num_classes: number of classes; 0 for regression.
        hyperparameters: checked by `check_hyperparameters`.

    Raises:
        InputError: the algorithm is for other rows or another task.
    """
    model, loss, optimizer = ALGORITHMS[algorithm](feature_shape, num_classes, **hyperparameters)
    return model, loss, optimizer
