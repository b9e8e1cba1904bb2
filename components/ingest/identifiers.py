"""The users' ids and labels, whole numbers or strings, and the rows that they stand for."""

import re
from typing import Any

import numpy as np
import pandas as pd

from .._files import InputError
from .graph import Array
from .tables import Chunk, Table

_WHOLE = re.compile(r"0|-?[1-9]\d{0,17}")


def tidy(values: pd.Series) -> Array:
    """Returns whole numbers as int64 where every value is one written plainly, else text.

    Args:
        values: no value missing; `007` is text, since its zeros mean something. Numbers of a column that
            is typed as fractional, which a missing value makes of whole ones, count as whole.
    """
    if pd.api.types.is_integer_dtype(values.dtype):
        return values.to_numpy(dtype=np.int64)
    if pd.api.types.is_float_dtype(values.dtype) and bool((values == np.floor(values)).all()):
        return values.to_numpy(dtype=np.int64)
    text = values.astype(str).to_numpy().astype(str)
    if all(_WHOLE.fullmatch(value) for value in text):
        return text.astype(np.int64)
    return text


class Rows:
    """Finds the row of each id.

    Args:
        ids: int64 or unicode [n], all different.
    """

    def __init__(self, ids: Array) -> None:
        self._text = ids.dtype.kind == "U"
        counted = not self._text and len(ids) > 0 and bool((ids == np.arange(len(ids))).all())
        self._size = len(ids)
        self._index = None if counted else pd.Index(ids.astype(object) if self._text else ids)

    @property
    def text(self) -> bool:
        """Whether the ids are strings."""
        return self._text

    def find(self, table: Table, chunk: Chunk, column: str) -> Array:
        """Returns int64, the row of each id in a column.

        Raises:
            InputError: an id is missing, or no node has it.
        """
        values = chunk.rows[column]
        missing = np.flatnonzero(values.isna().to_numpy())
        if len(missing):
            raise InputError(f"{table.place(chunk.first_row + int(missing[0]), column)}: no value")
        rows = self._look_up(values)
        unknown = np.flatnonzero(rows < 0)
        if len(unknown):
            at = int(unknown[0])
            raise InputError(
                f"{table.place(chunk.first_row + at, column)}: no node has the id {values.iloc[at]!r}"
            )
        return rows

    def _look_up(self, values: pd.Series) -> Array:
        if self._text:
            assert self._index is not None
            return np.asarray(
                self._index.get_indexer(values.astype(str).to_numpy(dtype=object)), dtype=np.int64
            )
        numbers: Any = values
        if not pd.api.types.is_integer_dtype(values.dtype):
            numbers = pd.to_numeric(values, errors="coerce")
            whole = (numbers == np.floor(numbers)).to_numpy()
            numbers = numbers.where(whole, -1).fillna(-1) if self._index is None else numbers.where(whole)
            if self._index is not None and bool(numbers.isna().any()):
                return np.where(
                    numbers.isna(), -1, self._index.get_indexer(numbers.fillna(0).astype(np.int64))
                )
        found = numbers.to_numpy(dtype=np.int64)
        if self._index is None:
            return np.where((found >= 0) & (found < self._size), found, -1)
        return np.asarray(self._index.get_indexer(found), dtype=np.int64)
