"""Columns of numbers and of splits, for every stage that reads tables; knows nothing of graphs."""

from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd

from .._files import InputError
from .graph import NO_SPLIT, TEST, TRAIN, VALIDATION, Array
from .tables import Chunk, Table

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


def choose_features(
    table: Table, named: Sequence[str], asked: Sequence[str], *, hint: str
) -> tuple[list[str], tuple[str, ...]]:
    """Chooses the columns that are features.

    Args:
        table: the table.
        named: columns that are something else.
        asked: the columns to take; empty takes all that are not named, but those of text.
        hint: what to do when none is left, for the complaint.

    Returns:
        The columns, and a warning when some of text were left out.

    Raises:
        InputError: no column is left.
    """
    if asked:
        return list(asked), ()
    others = [name for name in table.columns() if name not in named]
    text = _text_columns(table, others)
    wanted = [name for name in others if name not in text]
    if not wanted:
        beside = f" ({', '.join(text)}: text)" if text else ""
        raise InputError(
            f"{table.uri}: no column is left for features beside {', '.join(named)}{beside}; {hint}"
        )
    if not text:
        return wanted, ()
    shown = ", ".join(text[:5]) + (", ..." if len(text) > 5 else "")
    return wanted, (f"Columns of text were not taken as features: {shown}.",)


def finite_numbers(table: Table, chunk: Chunk, names: Sequence[str]) -> Array:
    """Returns float32 [rows of the chunk, len(names)], the values of columns.

    Raises:
        InputError: a value is missing, no number, or not finite as float32.
    """
    numbers = np.empty((len(chunk.rows), len(names)), dtype=np.float32)
    for index, name in enumerate(names):
        column = chunk.rows[name]
        with np.errstate(over="ignore"):
            numbers[:, index] = pd.to_numeric(column, errors="coerce").to_numpy(dtype=np.float64)
        wrong = np.flatnonzero(~np.isfinite(numbers[:, index]))
        if len(wrong):
            at = int(wrong[0])
            place, value = table.place(chunk.first_row + at, name), column.iloc[at]
            if bool(pd.api.types.is_scalar(value)) and pd.isna(value):
                raise InputError(f"{place}: no value; a finite number is needed")
            raise InputError(f"{place}: {str(value)!r} is not a finite number (of 32 bits)")
    return numbers


def split_codes(column: pd.Series, place: Callable[[int], str]) -> Array:
    """Returns int8 [n], the split that each word names.

    Args:
        column: the words; upper case and blanks around them make no difference.
        place: says where a row stands, to begin a complaint with.

    Raises:
        InputError: a word that names none: a typo would leave rows out.
    """
    words = [str(word).strip().lower() for word in column.where(column.notna(), "")]
    codes = pd.Series(words, dtype=object).map(SPLIT_WORDS)
    unknown = np.flatnonzero(codes.isna().to_numpy())
    if len(unknown):
        at = int(unknown[0])
        more = f" ({len(unknown):,} rows like that)" if len(unknown) > 1 else ""
        allowed = "train, validation (val), test, none or empty"
        raise InputError(f"{place(at)}: {str(column.iloc[at])!r} is no split{more}; allowed: {allowed}")
    return codes.to_numpy(dtype=np.int8)


def _text_columns(table: Table, names: Sequence[str]) -> list[str]:
    """Returns the columns that hold values and not one number, as far as the first chunk shows."""
    for chunk in table.chunks(names) if names else ():
        known = {name: chunk.rows[name].dropna() for name in names}
        return [
            name
            for name, column in known.items()
            if len(column) and bool(pd.to_numeric(column, errors="coerce").isna().all())
        ]
    return []
