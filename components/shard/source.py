"""Reads the rows that the options name, whatever they lie in, and holds them against the task."""

import dataclasses

from .._files import InputError, open_uri
from .._launch import progress
from ..ingest.example import digit_images
from ..ingest.tables import Table
from .arrays import read_arrays
from .config import ARRAYS_SUFFIX, ShardConfig
from .images import read_images
from .rows import Rows, number_labels
from .table import read_table


def read_rows(config: ShardConfig, *, least_classes: int = 2) -> Rows:
    """Reads and checks the rows.

    Args:
        config: where they are, and what they mean.
        least_classes: classes that a classification must have here; one where other sites have others.

    Raises:
        InputError: the first thing found wrong.
    """
    for uri in filter(None, (config.table, config.images, config.labels)):
        with open_uri(uri):  # what is not there is said before the others are read
            pass
    rows = _read(config)
    if config.task == "regression":
        return rows
    if len(rows.label_names) < least_classes:
        raise InputError(f"{rows.source}: one class only ({rows.label_names[0]!r}); at least two are needed")
    if 2 * len(rows.label_names) <= rows.num_rows:
        return rows
    note = f"{rows.num_rows:,} rows have {len(rows.label_names):,} classes: task 'regression' may be meant."
    return dataclasses.replace(rows, warnings=(*rows.warnings, note))


def _read(config: ShardConfig) -> Rows:
    if config.images:
        progress(f"reading images from {config.images} and labels from {config.labels}")
        return read_images(config)
    if not config.table:
        progress("no table or images are named: taking the built-in example, handwritten digits")
        return _example(config)
    progress(f"reading rows from {config.table}")
    table = Table(config.table)
    return read_arrays(config) if table.format == ARRAYS_SUFFIX else read_table(table, config)


def _example(config: ShardConfig) -> Rows:
    features, digits = digit_images()
    labels, names = number_labels(digits, config.task)
    note = "Nothing was named: this is the built-in example, scikit-learn's handwritten digits."
    return Rows(source="the example", features=features, labels=labels, label_names=names, warnings=(note,))
