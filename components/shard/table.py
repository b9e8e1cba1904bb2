"""Rows from a table with a column a feature and one of labels: CSV or Parquet."""

import numpy as np
import pandas as pd

from .._files import InputError
from ..ingest.columns import choose_features, finite_numbers, split_codes
from ..ingest.graph import Array
from ..ingest.identifiers import tidy
from ..ingest.nodes import name_labels
from ..ingest.tables import Table
from .config import ShardConfig
from .rows import Rows, number_labels


def read_table(table: Table, config: ShardConfig) -> Rows:
    """Reads a table, some rows at a time.

    Raises:
        InputError: a column is missing, or a value does not suit its column.
    """
    named = [config.label_column] + ([config.site_column] if config.site_column else [])
    table.require(*named, *config.feature_columns)
    if config.split_column and config.split_column in table.columns():
        named.append(config.split_column)
    hint = "add columns, or name them in feature_columns"
    wanted, notes = choose_features(table, named, config.feature_columns, hint=hint)
    columns, features, targets = _read(table, named, wanted, config)
    labels, label_names = _labels(table, columns[config.label_column], targets)
    sites, site_names = _sites(table, columns, config.site_column)
    return Rows(
        source=table.uri,
        features=features,
        labels=labels,
        label_names=label_names,
        feature_names=tuple(wanted),
        split=_split(table, columns, config.split_column),
        sites=sites,
        site_names=site_names,
        warnings=notes,
    )


def _read(
    table: Table, named: list[str], wanted: list[str], config: ShardConfig
) -> tuple[pd.DataFrame, Array, Array | None]:
    """Returns the named columns, features float32 [n, F], and for regression the labels float32 [n]."""
    columns, features, targets = [], [], []
    for chunk in table.chunks([*named, *wanted], as_text=named):
        columns.append(chunk.rows[named].copy())
        features.append(finite_numbers(table, chunk, wanted))
        if config.task == "regression":
            targets.append(finite_numbers(table, chunk, [config.label_column])[:, 0])
    if not sum(map(len, columns)):
        raise InputError(f"{table.uri}: no rows; at least one is needed")
    together = pd.concat(columns, ignore_index=True)
    return together, np.concatenate(features), np.concatenate(targets) if targets else None


def _labels(table: Table, column: pd.Series, targets: Array | None) -> tuple[Array, tuple[str, ...]]:
    if targets is not None:
        return number_labels(targets, "regression")
    _require_values(table, column, "label")
    return number_labels(tidy(column), "classification")


def _split(table: Table, columns: pd.DataFrame, name: str) -> Array | None:
    return split_codes(columns[name], lambda row: table.place(row, name)) if name in columns else None


def _sites(table: Table, columns: pd.DataFrame, name: str) -> tuple[Array | None, tuple[str, ...]]:
    if not name:
        return None, ()
    _require_values(table, columns[name], "site")
    return name_labels(tidy(columns[name]))


def _require_values(table: Table, column: pd.Series, what: str) -> None:
    missing = np.flatnonzero(column.isna().to_numpy())
    if len(missing):
        place = table.place(int(missing[0]), str(column.name))
        raise InputError(f"{place}: no value; every row needs a {what}")
