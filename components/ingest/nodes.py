"""Nodes from a table: ids, labels, split, sites, and features from columns."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from .._files import InputError
from .config import IngestConfig
from .graph import NO_SPLIT, TEST, TRAIN, VALIDATION, Array
from .identifiers import tidy
from .tables import Table

SPLIT_WORDS = {
    "train": TRAIN,
    "training": TRAIN,
    "val": VALIDATION,
    "valid": VALIDATION,
    "validation": VALIDATION,
    "test": TEST,
    "none": NO_SPLIT,
    "": NO_SPLIT,
}


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Nodes:
    """What the nodes' table says."""

    ids: Array
    """int64 or unicode [n]."""
    labels: Array
    """int64 [n], -1 = none."""
    label_names: tuple[str, ...]
    """Name of each class."""
    split: Array | None
    """int8 [n], or None when no column says."""
    sites: Array | None
    """int32 [n], or None."""
    site_names: tuple[str, ...]
    """Name of each site."""
    features: Any
    """float32 [n, F], or None when they come from elsewhere."""
    feature_names: tuple[str, ...]
    """Name of each feature column."""


def read_nodes(config: IngestConfig) -> Nodes:
    """Reads the nodes' table.

    Raises:
        InputError: a column is missing, an id is missing or given twice, a value does not suit its column.
    """
    table = Table(config.nodes)
    named = [config.id_column, config.label_column] + ([config.site_column] if config.site_column else [])
    table.require(*named, *config.feature_columns)
    present = table.columns()
    if config.split_column and config.split_column in present:
        named.append(config.split_column)
    wanted = _feature_columns(table, present, named, config)
    rows = _read_all(table, [*named, *wanted], named)
    if rows.empty:
        raise InputError(f"{config.nodes}: no nodes; a header and at least one row are needed")
    ids = _ids(table, rows[config.id_column])
    labels, label_names = _labels(table, rows[config.label_column])
    sites, site_names = _sites(table, rows, config.site_column)
    split = _split(table, rows, config.split_column) if config.split_column in named[2:] else None
    return Nodes(
        ids=ids,
        labels=labels,
        label_names=label_names,
        split=split,
        sites=sites,
        site_names=site_names,
        features=_features(table, rows, wanted) if wanted else None,
        feature_names=tuple(wanted),
    )


def name_labels(values: Array) -> tuple[Array, tuple[str, ...]]:
    """Numbers the classes in the order of their names (numbers by value).

    Args:
        values: int64 or unicode [n], every node labelled.

    Returns:
        int64 [n] and the names.
    """
    names, numbers = np.unique(values, return_inverse=True)
    return numbers.astype(np.int64), tuple(str(name) for name in names)


def _feature_columns(table: Table, present: list[str], named: list[str], config: IngestConfig) -> list[str]:
    if config.features:
        return []
    wanted = [str(name) for name in config.feature_columns] or [name for name in present if name not in named]
    if not wanted:
        raise InputError(
            f"{table.uri}: no column is left for features beside {', '.join(named)}; "
            "give the option features, or add columns"
        )
    return wanted


def _read_all(table: Table, names: list[str], as_text: list[str]) -> pd.DataFrame:
    chunks = [chunk.rows for chunk in table.chunks(names, as_text=as_text)]
    return pd.concat(chunks, ignore_index=True) if chunks else pd.DataFrame(columns=names)


def _ids(table: Table, column: pd.Series) -> Array:
    name = str(column.name)
    missing = np.flatnonzero(column.isna().to_numpy())
    if len(missing):
        raise InputError(f"{table.place(int(missing[0]), name)}: no value; every node needs an id")
    doubled = np.flatnonzero(column.duplicated().to_numpy())
    if len(doubled):
        at = int(doubled[0])
        raise InputError(f"{table.place(at, name)}: the id {column.iloc[at]!r} was given before")
    return tidy(column)


def _labels(table: Table, column: pd.Series) -> tuple[Array, tuple[str, ...]]:
    known = column.notna().to_numpy()
    if not known.any():
        raise InputError(f"{table.uri}: column {column.name!r} holds no label")
    values = tidy(column[known])
    if values.dtype.kind == "i" and (values < 0).any():
        known[np.flatnonzero(known)[values < 0]] = False
        values = values[values >= 0]
    numbers, names = name_labels(values)
    labels = np.full(len(column), -1, dtype=np.int64)
    labels[known] = numbers
    return labels, names


def _split(table: Table, rows: pd.DataFrame, name: str) -> Array:
    codes = rows[name].map(lambda word: SPLIT_WORDS.get(str(word).strip().lower()), na_action="ignore")
    codes = codes.where(rows[name].notna(), NO_SPLIT)
    unknown = np.flatnonzero(codes.isna().to_numpy())
    if len(unknown):
        at = int(unknown[0])
        raise InputError(
            f"{table.place(at, name)}: {rows[name].iloc[at]!r}; allowed: train, validation, test, none"
        )
    return codes.to_numpy(dtype=np.int8)


def _sites(table: Table, rows: pd.DataFrame, name: str) -> tuple[Array | None, tuple[str, ...]]:
    if not name:
        return None, ()
    missing = np.flatnonzero(rows[name].isna().to_numpy())
    if len(missing):
        raise InputError(f"{table.place(int(missing[0]), name)}: no value; every node needs a site")
    names, numbers = np.unique(rows[name].astype(str).to_numpy().astype(str), return_inverse=True)
    return numbers.astype(np.int32), tuple(str(each) for each in names)


def _features(table: Table, rows: pd.DataFrame, names: list[str]) -> Array:
    features = np.empty((len(rows), len(names)), dtype=np.float32)
    for index, name in enumerate(names):
        column = rows[name]
        numbers = pd.to_numeric(column, errors="coerce").to_numpy(dtype=np.float64)
        wrong = np.flatnonzero(~np.isfinite(numbers))
        if len(wrong):
            at = int(wrong[0])
            raise InputError(
                f"{table.place(at, name)}: {column.iloc[at]!r} is not a finite number; a feature needs one"
            )
        features[:, index] = numbers
    return features
