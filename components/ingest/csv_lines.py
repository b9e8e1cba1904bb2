"""Where in a CSV file something stands: lines, rows of another length, bytes that are no text.

pandas reads the values; it fills short rows up and does not say where. A line is one of the file, from 1: a
row whose quoted value holds a line end takes several. Knows nothing of graphs.
"""

import csv
from collections.abc import Iterable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Ragged:
    """A row that has not as many values as the header."""

    line: int
    """Where it begins."""
    found: int
    """Its values."""
    wanted: int
    """Columns that the header names."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Undecodable:
    """The first byte that is not UTF-8."""

    line: int
    """Where it is."""
    column: str
    """Name of its column; empty in the header."""
    byte: int
    """Its value."""


def line_of(text: Iterable[str], row: int) -> int:
    """Returns the line at which a row begins.

    Args:
        text: the lines of the file.
        row: number of the row after the header, from 0.
    """
    for number, (line, _) in enumerate(_records(text), start=-1):
        if number == row:
            return line
    return row + 2


def last_line(text: Iterable[str]) -> int:
    """Returns the line at which the last row begins, which is where a quote that is never closed opens."""
    return max((line for line, _ in _records(text)), default=1)


def find_ragged(text: Iterable[str]) -> Ragged | None:
    """Returns the first row of another length than the header, None when there is none."""
    wanted = 0
    for line, record in _records(text):
        wanted = wanted or len(record)
        if len(record) != wanted:
            return Ragged(line=line, found=len(record), wanted=wanted)
    return None


def find_undecodable(raw: Iterable[bytes]) -> Undecodable | None:
    """Returns the first byte that is not UTF-8, None when all are.

    Args:
        raw: the lines of the file, each with its end.
    """
    header: list[str] = []
    for line, found in enumerate(raw, start=1):
        try:
            text = found.decode("utf-8-sig" if line == 1 else "utf-8")
        except UnicodeDecodeError as error:
            values = next(csv.reader([found.decode("utf-8", errors="replace")]), [])
            at = next((index for index, value in enumerate(values) if "\ufffd" in value), len(header))
            column = header[at] if at < len(header) else ""
            return Undecodable(line=line, column=column, byte=found[error.start])
        if line == 1:
            header = next(csv.reader([text], skipinitialspace=True), [])
    return None


def _records(text: Iterable[str]) -> Iterator[tuple[int, list[str]]]:
    """Yields the rows that are not blank, the header first, each with the line at which it begins."""
    reader = csv.reader(text, skipinitialspace=True)
    line = 1
    try:
        for record in reader:
            if len(record) > 1 or any(value.strip() for value in record):
                yield line, record
            line = reader.line_num + 1
    except csv.Error:
        return  # what it is, pandas says
