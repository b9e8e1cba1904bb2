"""Where in a CSV file something stands: lines, rows of another length, stray characters, bytes not of text.

pandas reads the values; it fills short rows up and does not say where. A line is one of the file, from 1: a
row whose quoted value holds a line end takes several. Knows nothing of graphs.
"""

import csv
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

_NUL = "\0"
_INNER_QUOTE = re.compile(r'"(?:(?<=[^,\r\n"]")|(?<=[,\r\n]""))[^,"\r\n]')
"""A quote before another character that is not the first of a value: it closes one, or opens one behind a
blank."""
_WELL = r' *+(?:"(?:[^"]|"")*+" *+|(?!")[^,\r\n]*+)'
_VALUE = re.compile(_WELL)
_ROW = re.compile(rf"{_WELL}(?:,{_WELL})*+[\r\n]*")
_END = re.compile(r"[,\r\n]")


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


@dataclass(frozen=True, kw_only=True, slots=True)
class Stray:
    """The first value with a character that has no place there, and that pandas drops or stops at."""

    line: int
    """Where the row begins."""
    column: str
    """Name of its column; empty behind those that the header names."""
    value: str
    """The value as it stands there, with its quotes."""

    @property
    def holds_nul(self) -> bool:
        """Whether it is the character NUL; else text follows a closing quote."""
        return _NUL in self.value


def header_of(text: Iterable[str]) -> tuple[int, list[str]]:
    """Returns the line at which the header begins, and the names in it; none where there is no header."""
    return next(_records(text), (1, []))


def may_be_stray(text: str) -> bool:
    """Tells at little cost whether a part of a file is worth `find_stray`.

    A value whose quotes close behind a comma, a line end or a quote, with text after them, passes unseen.

    Args:
        text: any consecutive characters of the file.
    """
    return _NUL in text or ('"' in text and _INNER_QUOTE.search(text) is not None)


def find_stray(text: Iterable[str]) -> Stray | None:
    """Returns the first value that holds NUL, or goes on behind its closing quote; None when none does.

    A quote inside a value that begins without one stands for itself.

    Args:
        text: the lines of the file, each with its end.
    """
    header: list[str] = []
    read: list[str] = []
    for line, record in _records(_kept(text, read)):
        header = header or record
        raw = "".join(read).lstrip(" \r\n")
        read.clear()
        if _NUL not in raw and _ROW.fullmatch(raw):
            continue
        for index, value in enumerate(_stray_values(raw)):
            if value:
                column = header[index] if index < len(header) else ""
                return Stray(line=line, column=column, value=value)
    return None


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


def _kept(lines: Iterable[str], read: list[str]) -> Iterator[str]:
    for line in lines:
        read.append(line)
        yield line


def _stray_values(raw: str) -> Iterator[str]:
    """Yields each value of a row that is stray, and '' for each other."""
    at = 0
    while True:
        well = _VALUE.match(raw, at)
        if well is None:
            return  # a quote that is never closed: pandas says so
        end = well.end()
        value = raw[at:end]
        if end < len(raw) and raw[end] not in ",\r\n":
            end = next((m.start() for m in _END.finditer(raw, end)), len(raw))
            value = raw[at:end]
            yield value.strip()
        else:
            yield value.strip() if _NUL in value else ""
        if raw[end : end + 1] != ",":
            return
        at = end + 1


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
