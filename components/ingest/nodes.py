"""Nodes from a table: ids, labels, split, sites, and features from columns."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from .._files import InputError
from .columns import choose_features, finite_numbers, split_codes
from .config import IngestConfig
from .graph import NO_SPLIT, Array
from .identifiers import tidy
from .tables import Table


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
    warnings: tuple[str, ...] = ()
    """What was read otherwise than it may have been meant."""


def read_nodes(config: IngestConfig) -> Nodes:
    """Reads the nodes' table.

    Raises:
        InputError: a column is missing, an id is missing or given twice, a value does not suit its column, a
            node of a split has no label.
    """
    table = Table(config.nodes)
    named = [config.id_column, config.label_column] + ([config.site_column] if config.site_column else [])
    table.require(*named, *config.feature_columns)
    present = table.columns()
    if config.split_column and config.split_column in present:
        named.append(config.split_column)
    wanted, notes = ([], ()) if config.features else _feature_columns(table, named, config)
    rows, features = _read_all(table, named, wanted)
    if rows.empty:
        raise InputError(f"{config.nodes}: no nodes; a header and at least one row are needed")
    ids = _ids(table, rows[config.id_column])
    labels, label_names = _labels(table, rows[config.label_column])
    sites, site_names = _sites(table, rows, config.site_column)
    has_split = config.split_column in named[2:]
    split = _split(table, rows[config.split_column]) if has_split else None
    if split is not None:
        _check_labelled(table, rows, labels, split, config)
    return Nodes(
        ids=ids,
        labels=labels,
        label_names=label_names,
        split=split,
        sites=sites,
        site_names=site_names,
        features=features,
        feature_names=tuple(wanted),
        warnings=notes,
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


def _feature_columns(
    table: Table, named: list[str], config: IngestConfig
) -> tuple[list[str], tuple[str, ...]]:
    hint = "give the option features, or add columns"
    return choose_features(table, named, [str(name) for name in config.feature_columns], hint=hint)


def _read_all(table: Table, named: list[str], wanted: list[str]) -> tuple[pd.DataFrame, Array | None]:
    rows, features = [], []
    for chunk in table.chunks([*named, *wanted], as_text=named):
        rows.append(chunk.rows[named].copy())
        features.append(finite_numbers(table, chunk, wanted))
    if not rows:
        return pd.DataFrame(columns=named), None
    return pd.concat(rows, ignore_index=True), np.concatenate(features) if wanted else None


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


def _split(table: Table, column: pd.Series) -> Array:
    return split_codes(column, lambda row: table.place(row, str(column.name)))


def _check_labelled(
    table: Table, rows: pd.DataFrame, labels: Array, split: Array, config: IngestConfig
) -> None:
    wrong = np.flatnonzero((split != NO_SPLIT) & (labels < 0))
    if len(wrong):
        at, column = int(wrong[0]), config.split_column
        more = f" ({len(wrong):,} nodes alike)" if len(wrong) > 1 else ""
        said = f"no label, but {column} is {rows[column].iloc[at]!r}{more}"
        place = table.place(at, config.label_column)
        raise InputError(f"{place}: {said}; label the node, or leave its {column} empty")


def _sites(table: Table, rows: pd.DataFrame, name: str) -> tuple[Array | None, tuple[str, ...]]:
    if not name:
        return None, ()
    missing = np.flatnonzero(rows[name].isna().to_numpy())
    if len(missing):
        raise InputError(f"{table.place(int(missing[0]), name)}: no value; every node needs a site")
    names, numbers = np.unique(rows[name].astype(str).to_numpy().astype(str), return_inverse=True)
    return numbers.astype(np.int32), tuple(str(each) for each in names)
