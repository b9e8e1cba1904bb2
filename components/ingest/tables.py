"""Tables in chunks, whatever their format; every complaint names the file, the line and the column.

Knows nothing of graphs.
"""

import gzip
import io
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import IO, Any, cast
from urllib.parse import urlsplit

import numpy as np
import pandas as pd

from .._files import InputError, local_file, open_uri

CHUNK_ROWS = 1 << 18
"""Rows read at a time."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Chunk:
    """Some consecutive rows of a table."""

    first_row: int
    """Number of the first of them, from 0."""
    rows: pd.DataFrame
    """The rows."""


class Table:
    """A table that a URI names: `.csv`, `.csv.gz`, `.parquet` or `.npz` with one array a column.

    Args:
        uri: where it is; the format follows from its ending.
    """

    def __init__(self, uri: str) -> None:
        self.uri = uri
        self.format = suffix(uri)
        if self.format not in (".csv", ".csv.gz", ".parquet", ".npz"):
            raise InputError(f"{uri}: unknown format; allowed: .csv, .csv.gz, .parquet, .npz")

    def columns(self) -> list[str]:
        """Returns the names of the columns.

        Raises:
            InputError: the file is missing, empty, or not of its format.
        """
        if self.format == ".parquet":
            with _parquet(self.uri) as file:
                return [str(name) for name in file.schema_arrow.names]
        if self.format == ".npz":
            return list(load_npz(self.uri))
        for chunk in self._csv(None, (), 1):
            return list(chunk.rows.columns)
        return []

    def require(self, *names: str) -> None:
        """Raises `InputError` when a column is missing, and says which there are."""
        present = self.columns()
        for name in names:
            if name not in present:
                shown = ", ".join(present[:12]) + (", ..." if len(present) > 12 else "")
                raise InputError(f"{self.uri}: no column {name!r}; it has {shown}")

    def chunks(self, names: Sequence[str], *, as_text: Sequence[str] = ()) -> Iterator[Chunk]:
        """Yields the rows, some at a time.

        Args:
            names: the columns wanted.
            as_text: those of them to leave as strings where the file holds text.

        Raises:
            InputError: a row with too many values, or text that is not UTF-8.
        """
        if self.format == ".parquet":
            yield from self._parquet(names)
        elif self.format == ".npz":
            arrays = load_npz(self.uri)
            lengths = {name: len(arrays[name]) for name in names}
            if len(set(lengths.values())) > 1:
                raise InputError(f"{self.uri}: arrays of different length: {lengths}")
            yield Chunk(first_row=0, rows=pd.DataFrame({name: arrays[name] for name in names}))
        else:
            yield from self._csv(names, as_text, CHUNK_ROWS)

    def place(self, row: int, column: str) -> str:
        """Returns `file:line: column` (or the row, where a file has no lines) to begin a complaint with."""
        if self.format.startswith(".csv"):
            return f"{self.uri}:{self._line(row)}: column {column!r}"
        return f"{self.uri}: row {row}: column {column!r}"

    def _line(self, row: int) -> int:
        seen = -2
        with self._text() as text:
            for number, line in enumerate(text, start=1):
                seen += bool(line.strip())
                if seen == row:
                    return number
        return row + 2

    @contextmanager
    def _text(self) -> Iterator[io.TextIOBase]:
        with open_uri(self.uri) as raw:
            stream = cast(IO[bytes], gzip.GzipFile(fileobj=raw)) if self.format.endswith(".gz") else raw
            yield io.TextIOWrapper(stream, encoding="utf-8-sig", newline=None)

    def _csv(self, names: Sequence[str] | None, as_text: Sequence[str], size: int) -> Iterator[Chunk]:
        first_row = 0
        try:
            with self._text() as text:
                reader = pd.read_csv(
                    text,  # type: ignore[arg-type]
                    dtype=cast(Any, {name: str for name in as_text}),
                    chunksize=size,
                    keep_default_na=False,
                    na_values=[""],
                )
                for rows in reader:
                    if not isinstance(rows.index, pd.RangeIndex):
                        raise InputError(f"{self.uri}:2: more values than the header names columns")
                    yield Chunk(first_row=first_row, rows=rows if names is None else rows[list(names)])
                    first_row += len(rows)
        except pd.errors.EmptyDataError as error:
            raise InputError(f"{self.uri}: the file is empty; a header line is needed") from error
        except pd.errors.ParserError as error:
            raise InputError(_parse_complaint(self.uri, str(error))) from error
        except UnicodeDecodeError as error:
            raise InputError(f"{self.uri}: not UTF-8 text ({error.reason} at byte {error.start})") from error
        except (gzip.BadGzipFile, EOFError) as error:
            raise InputError(f"{self.uri}: not a whole gzip file ({error})") from error

    def _parquet(self, names: Sequence[str]) -> Iterator[Chunk]:
        first_row = 0
        with _parquet(self.uri) as file:
            for batch in file.iter_batches(batch_size=CHUNK_ROWS, columns=list(names)):
                rows = batch.to_pandas()
                yield Chunk(first_row=first_row, rows=rows)
                first_row += len(rows)


def suffix(uri: str) -> str:
    """Returns the ending that tells the format, such as `.csv.gz`."""
    name = PurePosixPath(urlsplit(uri).path or uri).name.lower()
    return ".csv.gz" if name.endswith(".csv.gz") else PurePosixPath(name).suffix


def load_npz(uri: str) -> dict[str, Any]:
    """Returns the arrays of an `.npz` (or the one of an `.npy`, as `array`), refusing pickled objects.

    Raises:
        InputError: not such a file, or one that holds Python objects.
    """
    with local_file(uri) as path:
        try:
            loaded = np.load(path, allow_pickle=False)
            if isinstance(loaded, np.ndarray):
                return {"array": loaded}
            with loaded:
                return {name: loaded[name] for name in loaded.files}
        except ValueError as error:
            if "pickle" in str(error).lower():
                raise InputError(f"{uri}: holds pickled Python objects, which are not read") from error
            raise InputError(f"{uri}: not a numpy file ({error})") from error
        except (OSError, EOFError) as error:
            raise InputError(f"{uri}: not a numpy file ({error})") from error


@contextmanager
def _parquet(uri: str) -> Iterator[Any]:
    import pyarrow
    import pyarrow.parquet

    with local_file(uri) as path:
        try:
            file = pyarrow.parquet.ParquetFile(path)
        except pyarrow.ArrowInvalid as error:
            raise InputError(f"{uri}: not a Parquet file ({str(error).splitlines()[0]})") from error
        with file:
            yield file


def _parse_complaint(uri: str, text: str) -> str:
    found = re.search(r"Expected (\d+) fields in line (\d+), saw (\d+)", text)
    if found:
        return f"{uri}:{found[2]}: {found[3]} values, the header names {found[1]} columns"
    return f"{uri}: {' '.join(text.split())}"
