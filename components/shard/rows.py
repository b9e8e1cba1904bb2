"""Labelled rows in memory, whatever they were read from; knows nothing of files and sites' folders."""

from dataclasses import dataclass

import numpy as np

from ..ingest.graph import Array
from ..ingest.nodes import name_labels


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Rows:
    """What was read, before anyone knows which site gets it."""

    source: str
    """The URI that the labels come from, to begin a complaint with."""
    features: Array
    """float32 or uint8 [n, ...], at least two dimensions."""
    labels: Array
    """int64 [n], index into label_names; float32 [n] for regression."""
    label_names: tuple[str, ...]
    """Name of each class; empty for regression."""
    feature_names: tuple[str, ...] = ()
    """Name of each feature column; empty when the features came without names."""
    split: Array | None = None
    """int8 [n], or None where the source does not say."""
    sites: Array | None = None
    """int64 [n], index into site_names, or None where the source does not say."""
    site_names: tuple[str, ...] = ()
    """Name of each site that the source names."""
    warnings: tuple[str, ...] = ()
    """What was read otherwise than it may have been meant."""

    @property
    def num_rows(self) -> int:
        """Number of rows."""
        return len(self.labels)

    @property
    def num_classes(self) -> int:
        """Number of classes; 0 for regression."""
        return len(self.label_names)


def number_labels(values: Array, task: str) -> tuple[Array, tuple[str, ...]]:
    """Returns labels as they are stored, and the names of the classes.

    Args:
        values: [n], none missing: int64 or unicode for classification (numbers are classes too, also
            negative ones), finite numbers for regression.
        task: `classification` or `regression`.

    Returns:
        int64 [n] and the names in the order of the labels; for regression float32 [n] and none.
    """
    if task == "regression":
        return values.astype(np.float32), ()
    return name_labels(values)
