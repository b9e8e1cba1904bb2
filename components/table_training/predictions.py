"""What the model says about every row of every site: the table of predictions. Knows nothing of frameworks.

Drawing of the artifact's folder::

    predictions/
      predictions.parquet    site, row (of the source), split, label, predicted, probability

Labels are names; `probability` is the softmax of the predicted class. For regression label and predicted are
numbers, and there is no `probability`. A row without a split has an empty string.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from .._files import new_directory
from ..training.outcome import PREDICTIONS, Outcome, probabilities

SPLIT_NAMES = np.array(["", "train", "validation", "test"], dtype=object)


def outcome_of(folder: Path, *, site: str, workers: Iterable[int]) -> Outcome:
    """Joins the `outcome-<worker>.npz` files of a site, in the order of its rows in the source.

    Args:
        folder: of the files.
        site: name of the site.
        workers: numbers of workers of the site.
    """
    parts = []
    for worker in workers:
        with np.load(folder / f"outcome-{worker}.npz", allow_pickle=False) as file:
            parts.append(dict(file))
    joined = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    order = np.argsort(joined["rows"], kind="stable")
    return Outcome(
        site, joined["rows"][order], joined["outputs"][order], joined["labels"][order], joined["split"][order]
    )


def write_predictions(path: Path, outcomes: Sequence[Outcome], label_names: Sequence[str]) -> None:
    """Writes the artifact.

    Args:
        path: the folder to write.
        outcomes: one a site.
        label_names: name of each class; empty for regression.
    """
    with new_directory(path) as folder:
        tables = [_table(outcome, np.array(label_names, dtype=object)) for outcome in outcomes]
        pd.concat(tables, ignore_index=True).to_parquet(folder / PREDICTIONS, index=False)


def _table(outcome: Outcome, names: "np.ndarray[tuple[int], np.dtype[np.object_]]") -> pd.DataFrame:
    table = pd.DataFrame(
        {"site": outcome.site, "row": outcome.node_ids, "split": SPLIT_NAMES[outcome.split]},
    )
    if not len(names):
        return table.assign(label=outcome.labels, predicted=outcome.logits[:, 0])
    share = probabilities(outcome.logits)
    predicted = share.argmax(axis=1)
    chosen = share[np.arange(len(share)), predicted]
    return table.assign(label=names[outcome.labels], predicted=names[predicted], probability=chosen)
