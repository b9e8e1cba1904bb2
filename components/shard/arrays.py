"""Rows from an `.npz`: `x` [n, ...] and `y` [n], perhaps with arrays that name splits and sites."""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from .._files import InputError
from ..ingest.columns import split_codes
from ..ingest.features import as_float32
from ..ingest.graph import Array
from ..ingest.identifiers import tidy
from ..ingest.nodes import name_labels
from ..ingest.tables import load_npz
from .config import ShardConfig
from .images import scaled
from .rows import Rows, number_labels


def read_arrays(config: ShardConfig) -> Rows:
    """Reads an `.npz`.

    Raises:
        InputError: an array is missing, of the wrong type or shape, or holds a value that is not finite.
    """
    uri = config.table
    arrays = load_npz(uri)
    for name in ("x", "y"):
        if name not in arrays:
            raise InputError(f"{uri}: no array {name!r}; x and y are needed, it has {', '.join(arrays)}")
    features = _features(uri, arrays["x"])
    values = _labels(uri, _one_a_row(uri, arrays, "y", len(features)), config.task)
    labels, names = number_labels(values, config.task)
    split = _split(uri, arrays, config.split_column, len(features))
    sites, site_names = _sites(uri, arrays, config.site_column, len(features))
    return Rows(
        source=uri,
        features=scaled(features, uri) if config.scale_images else features,
        labels=labels,
        label_names=names,
        split=split,
        sites=sites,
        site_names=site_names,
    )


def _features(uri: str, found: Array) -> Array:
    if found.ndim < 2:
        raise InputError(f"{uri}: x has shape {list(found.shape)}; [rows, ...] is needed")
    if found.dtype.kind not in "fiub":
        raise InputError(f"{uri}: x has type {found.dtype}; numbers are needed")
    if 0 in found.shape:
        raise InputError(
            f"{uri}: x has shape {list(found.shape)}; at least one row and one feature are needed"
        )
    if found.dtype == np.uint8:
        return found
    return np.asarray(as_float32(found.reshape(len(found), -1), f"{uri}: x")).reshape(found.shape)


def _one_a_row(uri: str, arrays: Mapping[str, Array], name: str, num_rows: int) -> Array:
    found = arrays[name]
    if found.ndim == 2 and found.shape[1] == 1:
        found = found[:, 0]
    if found.shape != (num_rows,):
        raise InputError(
            f"{uri}: {name} has shape {list(found.shape)}; [{num_rows}] is needed, one a row of x"
        )
    return found


def _labels(uri: str, found: Array, task: str) -> Array:
    if task == "regression":
        if found.dtype.kind not in "fiub":
            raise InputError(f"{uri}: y has type {found.dtype}; numbers are needed for task 'regression'")
        return np.asarray(as_float32(found[:, np.newaxis], f"{uri}: y"))[:, 0]
    if found.dtype.kind == "U":
        empty = np.flatnonzero(np.char.strip(found) == "")
        if len(empty):
            raise InputError(f"{uri}: y: row {empty[0]} is empty; every row needs a label")
        return tidy(pd.Series(found))
    whole = found.astype(np.int64) if found.dtype.kind in "iub" else _whole(found)
    if whole is None:
        raise InputError(
            f"{uri}: y has type {found.dtype} and is not whole; whole numbers or strings are needed for task "
            "'classification'"
        )
    return whole


def _whole(found: Array) -> Array | None:
    """Returns int64 where all numbers are whole."""
    if found.dtype.kind != "f" or not np.isfinite(found).all():
        return None
    numbers = found.astype(np.int64)
    return numbers if np.array_equal(numbers, found) else None


def _split(uri: str, arrays: Mapping[str, Array], name: str, num_rows: int) -> Array | None:
    if not name or name not in arrays:
        return None
    words = _one_a_row(uri, arrays, name, num_rows)
    return split_codes(pd.Series(words), lambda row: f"{uri}: {name}: row {row}")


def _sites(
    uri: str, arrays: Mapping[str, Array], name: str, num_rows: int
) -> tuple[Array | None, tuple[str, ...]]:
    if not name:
        return None, ()
    if name not in arrays:
        raise InputError(f"{uri}: no array {name!r}; it has {', '.join(arrays)}")
    found = pd.Series(_one_a_row(uri, arrays, name, num_rows))
    missing = np.flatnonzero([pd.isna(value) or not str(value).strip() for value in found])
    if len(missing):
        raise InputError(f"{uri}: {name}: row {missing[0]} is empty; every row needs a site")
    return name_labels(tidy(found))
