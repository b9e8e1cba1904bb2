"""What the model says about every row of every site: the table of predictions. Knows nothing of frameworks.

Drawing of the artifact's folder::

    predictions/
      manifest.json          see `training.predictions`
      predictions.parquet    site, row (of the source), split, label, predicted, probability; of pods a folder

Labels are names; `probability` is the softmax of the predicted class. For regression label and predicted are
numbers, and there is no `probability`. A row without a split has an empty string.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from ..training.outcome import Outcome, probabilities
from ..training.predictions import given_name, keep_judged, put_part, write_tables

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


def put_own(folder: Path, target: str, place: "OwnRows", label_names: Sequence[str]) -> None:
    """Writes the table of one worker's rows to where the artifact goes, and leaves what metrics need.

    Args:
        folder: where the worker's outcome lies, and what was written is told.
        target: path or URI of the artifact.
        place: whose rows they are.
        label_names: name of each class; empty for regression.
    """
    outcome = outcome_of(folder, site=place.site, workers=(place.worker,))
    table = _table(outcome, np.array(label_names, dtype=object))
    put_part(target, place.number, table).write(folder / given_name(place.worker))
    keep_judged(folder / f"outcome-{place.worker}.npz")


@dataclass(frozen=True, kw_only=True, slots=True)
class OwnRows:
    """Whose rows a table holds."""

    site: str
    """Name of the site."""
    worker: int
    """Number of the worker at its site."""
    number: int
    """Number of the worker among those of all sites."""


def write_predictions(path: Path, outcomes: Sequence[Outcome], label_names: Sequence[str]) -> None:
    """Writes the artifact.

    Args:
        path: the folder to write.
        outcomes: one a site.
        label_names: name of each class; empty for regression.
    """
    write_tables(path, [_table(outcome, np.array(label_names, dtype=object)) for outcome in outcomes])


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
