"""What a model says about every node, and how right it is: predictions, accuracies, confusion matrix, ROC.

Works on arrays; knows nothing of DGL, torch or how the logits came about.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd

from .predictions import write_tables

NO_SPLIT, TRAIN, VALIDATION, TEST = 0, 1, 2, 3
_SPLIT_NAMES = np.array(["", "train", "validation", "test"], dtype=object)
_METRICS = {"train_accuracy": TRAIN, "val_accuracy": VALIDATION, "test_accuracy": TEST}
ROC_POINTS = 200
"""Most points of a ROC curve."""


@dataclass(frozen=True)
class Outcome:
    """What a model says about n nodes of one site."""

    site: str
    """Name of the site."""
    node_ids: npt.NDArray[np.generic] | None
    """The user's ids, [n]; None where pods wrote the predictions: only nodes with a split are here."""
    logits: npt.NDArray[np.float32]
    """[n, num_classes]."""
    labels: npt.NDArray[np.int64]
    """[n]; -1 for none."""
    split: npt.NDArray[np.int8]
    """[n]: 0 none, 1 train, 2 validation, 3 test."""


@dataclass(frozen=True)
class Roc:
    """A ROC curve, one class against the rest, micro-averaged over nodes and classes; all values finite."""

    false_positive_rate: list[float]
    """Ascending."""
    true_positive_rate: list[float]
    """Ascending."""
    threshold: list[float]
    """Descending; probability from which a class counts as predicted."""
    area: float
    """Area under the curve."""


def read_outcome(
    work: Path, *, site: str, num_parts: int, node_ids: npt.NDArray[np.generic] | None
) -> Outcome:
    """Joins the `outcome-<part>.npz` files that a site's trainers wrote.

    Args:
        work: the folder of the files.
        site: name of the site.
        num_parts: number of the site's parts.
        node_ids: the user's ids in the order of DGL's ids; None where pods have written the predictions.
    """
    parts = []
    for part in range(num_parts):
        with np.load(work / f"outcome-{part}.npz", allow_pickle=False) as file:
            parts.append({name: file[name] for name in ("logits", "labels", "split")})
    joined = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    return Outcome(site, node_ids, joined["logits"], joined["labels"], joined["split"])


def probabilities(logits: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Returns the softmax over the classes, float32 [n, num_classes]."""
    shifted = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(shifted / shifted.sum(axis=1, keepdims=True), dtype=np.float32)


def accuracies(outcomes: Sequence[Outcome]) -> dict[str, float]:
    """Returns `train_accuracy`, `val_accuracy`, `test_accuracy` over all sites, where there are nodes."""
    found = {}
    for name, code in _METRICS.items():
        labels, logits = _chosen(outcomes, code)
        if len(labels):
            found[name] = float((logits.argmax(axis=1) == labels).mean())
    return found


def judged_split(outcomes: Sequence[Outcome]) -> int:
    """Returns the split that reports speak of: test, or validation or train where there is no test node."""
    for code in (TEST, VALIDATION):
        if any((outcome.split == code).any() for outcome in outcomes):
            return code
    return TRAIN


def confusion(outcomes: Sequence[Outcome], num_classes: int, split: int) -> npt.NDArray[np.int64]:
    """Returns how many nodes of each class (row) were taken for which (column), int64 [c, c]."""
    labels, logits = _chosen(outcomes, split)
    flat = labels * num_classes + logits.argmax(axis=1)
    return np.bincount(flat, minlength=num_classes**2).reshape(num_classes, num_classes).astype(np.int64)


def roc(outcomes: Sequence[Outcome], num_classes: int, split: int) -> Roc | None:
    """Returns the micro-averaged ROC curve of a split, thinned to `ROC_POINTS`; None without two outcomes."""
    from sklearn.metrics import auc, roc_curve

    labels, logits = _chosen(outcomes, split)
    if not len(labels) or num_classes < 2:
        return None
    truth = (labels[:, None] == np.arange(num_classes)).ravel()
    false_positive, true_positive, threshold = roc_curve(truth, probabilities(logits).ravel())
    area = float(auc(false_positive, true_positive))
    kept = np.unique(np.linspace(0, len(threshold) - 1, min(ROC_POINTS, len(threshold))).round().astype(int))
    # The first threshold is infinite: no class is predicted. Above any probability says the same.
    finite = np.where(np.isfinite(threshold), threshold, 1.0 + 1e-6)
    return Roc(
        [float(value) for value in false_positive[kept]],
        [float(value) for value in true_positive[kept]],
        [float(value) for value in finite[kept]],
        area,
    )


def write_predictions(path: Path, outcomes: Sequence[Outcome], label_names: Sequence[str]) -> None:
    """Writes the predictions artifact, one table.

    Args:
        path: the folder to write.
        outcomes: one a site.
        label_names: name of each class.
    """
    write_tables(path, [predictions_of(outcome, label_names) for outcome in outcomes])


def predictions_of(outcome: Outcome, label_names: Sequence[str]) -> pd.DataFrame:
    """Returns the table of predictions: id, site, split, label, predicted, probability.

    Labels are names; a node without a label has none, one without a split an empty string.
    """
    names = np.array([*label_names, None], dtype=object)
    share = probabilities(outcome.logits)
    predicted = share.argmax(axis=1)
    return pd.DataFrame(
        {
            "id": outcome.node_ids,
            "site": outcome.site,
            "split": _SPLIT_NAMES[outcome.split],
            "label": names[outcome.labels],
            "predicted": names[predicted],
            "probability": share[np.arange(len(share)), predicted],
        }
    )


def _chosen(outcomes: Sequence[Outcome], split: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]:
    masks = [(outcome.split == split) & (outcome.labels >= 0) for outcome in outcomes]
    labels = [outcome.labels[mask] for outcome, mask in zip(outcomes, masks, strict=True)]
    logits = [outcome.logits[mask] for outcome, mask in zip(outcomes, masks, strict=True)]
    return np.concatenate(labels), np.concatenate(logits)
