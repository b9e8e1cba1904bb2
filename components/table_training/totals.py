"""How right a model is over the rows of all sites, from sums that every site adds to."""

import math
from collections.abc import Callable, Mapping

import numpy as np

from ..ingest.graph import TEST, TRAIN, VALIDATION, Array
from .learner import Judged

SPLITS: Mapping[str, int] = {"train": TRAIN, "val": VALIDATION, "test": TEST}
"""Code of each split that is judged, by the first word of its metrics."""

Total = Callable[[Array], Array]
"""Returns the sum of a few numbers over all workers; called by all alike."""


def classification(judged: Judged, labels: Array, split: Array, total: Total) -> dict[str, float]:
    """Returns `train_accuracy`, `val_accuracy`, `test_accuracy` of all sites, where there are rows.

    Args:
        judged: what the model says about this worker's rows.
        labels: int64 [n].
        split: int8 [n].
        total: the sum over all workers.
    """
    right = judged.outputs.argmax(axis=1) == labels
    own = [[float((split == code).sum()), float(right[split == code].sum())] for code in SPLITS.values()]
    sums = total(np.array(own).ravel()).reshape(-1, 2)
    return {
        f"{name}_accuracy": float(correct / count)
        for name, (count, correct) in zip(SPLITS, sums, strict=True)
        if count
    }


def regression(judged: Judged, labels: Array, split: Array, total: Total) -> dict[str, float]:
    """Returns `train_rmse`, `train_r2`, `val_...` and `test_...` of all sites, where there are rows.

    R2 is 1 - squared error / squared distance from the split's mean;
    left out where all labels are equal.

    Args:
        judged: what the model says about this worker's rows.
        labels: float32 [n].
        split: int8 [n].
        total: the sum over all workers.
    """
    truth, error = labels.astype(np.float64), judged.outputs[:, 0].astype(np.float64) - labels
    masks = [split == code for code in SPLITS.values()]
    firsts = total(np.array([[m.sum(), truth[m].sum(), (error[m] ** 2).sum()] for m in masks]).ravel())
    counts, sums, errors = firsts.reshape(-1, 3).T
    means = sums / np.maximum(counts, 1)
    spread = total(np.array([((truth[m] - mean) ** 2).sum() for m, mean in zip(masks, means, strict=True)]))
    found = {}
    for index, name in enumerate(SPLITS):
        if counts[index]:
            found[f"{name}_rmse"] = math.sqrt(errors[index] / counts[index])
            if spread[index]:
                found[f"{name}_r2"] = float(1 - errors[index] / spread[index])
    return found
