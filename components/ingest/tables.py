"""Tables in chunks, whatever their format; every complaint names the file, the line and the column.

Knows nothing of graphs.
"""

import gzip
import io
import re
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, Any, cast

import numpy as np
import pandas as pd

from .._files import InputError, local_file, open_uri, suffix
from .csv_lines import find_ragged, find_stray, find_undecodable, header_of, last_line, line_of, may_be_stray
from .header import check_names

CHUNK_ROWS = 1 << 17
"""Rows of two columns read at a time; fewer of wider tables."""
_BUFFER_BYTES = 1 << 16
"""Bytes of a Parquet column read ahead; else whole columns of a row group are held."""
_UNNAMED_INDEX = re.compile(r"__index_level_\d+__")
"""What pandas calls row labels without a name, which say nothing of the rows."""

_BEGINNINGS = (b"\x93NUMPY", b"PK", b"\x80")
"""Of an .npy, of an .npz, and of what Python pickles."""


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
        self._even = False  # whether all rows are known to be as long as the header
        self._clean = False  # whether the file is known to hold no stray character

    def columns(self) -> list[str]:
        """Returns the names of the columns.

        Raises:
            InputError: the file is missing, empty, or not of its format; a column has no name, or that of
                another.
        """
        if self.format == ".npz":
            return list(load_npz(self.uri))
        if self.format == ".parquet":
            with _parquet(self.uri) as file:
                found = [str(name) for name in file.schema_arrow.names]
            names = [name for name in found if not _UNNAMED_INDEX.fullmatch(name)]
            check_names(names, self.uri)
            return names
        with self._complaints(), self._text() as text:
            line, names = header_of(text)
        check_names(names, f"{self.uri}:{line}")
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
            InputError: a row with another number of values than the header, or text that is not UTF-8.
        """
        if self.format == ".parquet":
            yield from self._parquet(names)
        elif self.format == ".npz":
            arrays = load_npz(self.uri)
            for name in names:
                if arrays[name].ndim != 1:
                    shape = list(arrays[name].shape)
                    raise InputError(f"{self.uri}: array {name!r} has shape {shape}; [rows] is needed")
            lengths = {name: len(arrays[name]) for name in names}
            if len(set(lengths.values())) > 1:
                raise InputError(f"{self.uri}: arrays of different length: {lengths}")
            for first in range(0, max(lengths.values()), _chunk_rows(names)):
                part = {name: arrays[name][first : first + _chunk_rows(names)] for name in names}
                yield Chunk(first_row=first, rows=pd.DataFrame(part))
        else:
            yield from self._csv(names, as_text, _chunk_rows(self.columns()))

    def place(self, row: int, column: str) -> str:
        """Returns `file:line: column` (or the row, where a file has no lines) to begin a complaint with."""
        if self.format.startswith(".csv"):
            return f"{self.uri}:{self._line(row)}: column {column!r}"
        return f"{self.uri}: row {row}: column {column!r}"

    def _line(self, row: int) -> int:
        with self._text() as text:
            return line_of(text, row)

    def _ragged(self) -> str:
        """Returns the complaint about the first row of another length than the header, or ''."""
        with self._text() as text:
            found = find_ragged(text)
        if found is None:
            return ""
        values = "1 value" if found.found == 1 else f"{found.found} values"
        return f"{self.uri}:{found.line}: {values}, the header names {found.wanted} columns"

    def _stray(self) -> str:
        """Returns the complaint about the first stray character, or ''."""
        with self._text() as text:
            found = find_stray(text)
        if found is None:
            return ""
        column = f"column {found.column!r}: " if found.column else ""
        place, value = f"{self.uri}:{found.line}: {column}", " ".join(found.value.split())[:40]
        if found.holds_nul:
            return f"{place}{value!r} holds the character NUL (byte 0x00); remove it"
        return f"{place}text behind a closing quote ({value}); inside quotes a quote is written twice"

    def _not_table(self, said: str) -> str:
        if "EOF inside string" in said:
            with self._text() as text:
                return f"{self.uri}:{last_line(text)}: a quote is opened and never closed"
        return self._ragged() or f"{self.uri}: {' '.join(said.split())}"

    def _not_text(self) -> str:
        with self._bytes() as raw:
            found = find_undecodable(raw)
        if found is None:
            return f"{self.uri}: not UTF-8 text"
        column = f"column {found.column!r}: " if found.column else ""
        return f"{self.uri}:{found.line}: {column}not UTF-8 text (byte 0x{found.byte:02x})"

    @contextmanager
    def _bytes(self) -> Iterator[IO[bytes]]:
        with open_uri(self.uri) as raw:
            yield cast(IO[bytes], gzip.GzipFile(fileobj=raw)) if self.format.endswith(".gz") else raw

    @contextmanager
    def _text(self) -> Iterator["_Watched"]:
        with self._bytes() as raw:
            yield _Watched(raw, encoding="utf-8-sig", newline=None)

    @contextmanager
    def _complaints(self) -> Iterator[None]:
        """Says where in the file what pandas, or Python, finds wrong."""
        try:
            yield
        except pd.errors.EmptyDataError as error:
            raise InputError(f"{self.uri}: the file is empty; a header line is needed") from error
        except pd.errors.ParserError as error:
            raise InputError(self._not_table(str(error))) from error
        except UnicodeDecodeError as error:
            raise InputError(self._not_text()) from error
        except (gzip.BadGzipFile, zlib.error, EOFError) as error:
            raise InputError(f"{self.uri}: not a whole gzip file ({error})") from error

    def _csv(self, names: Sequence[str] | None, as_text: Sequence[str], size: int) -> Iterator[Chunk]:
        first_row = 0
        with self._complaints(), self._text() as text:
            reader = pd.read_csv(
                text,  # type: ignore[arg-type]
                dtype=cast(Any, {name: str for name in as_text}),
                chunksize=size,
                keep_default_na=False,
                skipinitialspace=True,
                na_values=[""],
            )
            for rows in reader:
                self._check(text, rows)
                yield Chunk(first_row=first_row, rows=rows if names is None else rows[list(names)])
                first_row += len(rows)

    def _check(self, text: "_Watched", rows: pd.DataFrame) -> None:
        """Raises `InputError` where pandas read something otherwise than it stands in the file."""
        if text.may_be_stray and not self._clean:
            complaint = self._stray()
            if complaint:
                raise InputError(complaint)
            self._clean = True
        if not self._even and _may_be_ragged(rows):
            complaint = self._ragged()
            if complaint:
                raise InputError(complaint)
            self._even = True

    def _parquet(self, names: Sequence[str]) -> Iterator[Chunk]:
        first_row = 0
        with _parquet(self.uri) as file:
            for batch in file.iter_batches(batch_size=_chunk_rows(names), columns=list(names)):
                rows = batch.to_pandas(ignore_metadata=True)  # an index is a column like others
                yield Chunk(first_row=first_row, rows=rows)
                first_row += len(rows)


class _Watched(io.TextIOWrapper):
    """Text that remembers whether something in it may be stray."""

    def __init__(self, raw: IO[bytes], **options: Any) -> None:
        super().__init__(raw, **options)
        self.may_be_stray = False
        self._end = ""

    def read(self, size: int | None = -1, /) -> str:
        found = super().read(size)
        self.may_be_stray = self.may_be_stray or may_be_stray(self._end + found)
        self._end = found[-2:]
        return found


def _chunk_rows(names: Sequence[str]) -> int:
    return max(1024, 2 * CHUNK_ROWS // max(2, len(names)))


def load_npz(uri: str) -> dict[str, Any]:
    """Returns the arrays of an `.npz` (or the one of an `.npy`, as `array`), refusing pickled objects.

    Raises:
        InputError: not such a file, or one that holds Python objects.
    """
    with local_file(uri) as path, path.open("rb") as file:  # numpy leaves a damaged one open
        start = file.read(6)
        file.seek(0)
        if start and not start.startswith(_BEGINNINGS):
            raise InputError(
                f"{uri}: neither .npy nor .npz, whatever its name says: it begins with {start!r}"
            )
        try:
            loaded = np.load(file, allow_pickle=False)
            if isinstance(loaded, np.ndarray):
                return {"array": loaded}
            with loaded:
                return {name: loaded[name] for name in loaded.files}
        except ValueError as error:
            if "pickle" in str(error).lower():
                raise InputError(f"{uri}: holds pickled Python objects, which are not read") from error
            raise InputError(f"{uri}: not a numpy file ({error})") from error
        except (OSError, EOFError, zipfile.BadZipFile, zlib.error) as error:
            raise InputError(f"{uri}: not a numpy file ({error})") from error


@contextmanager
def _parquet(uri: str) -> Iterator[Any]:
    import pyarrow
    import pyarrow.parquet

    with local_file(uri) as path:
        try:
            with pyarrow.parquet.ParquetFile(path, buffer_size=_BUFFER_BYTES) as file:
                yield file
        except (pyarrow.ArrowException, OSError) as error:
            raise InputError(
                f"{uri}: not a Parquet file, or a damaged one ({str(error).splitlines()[0]})"
            ) from error


def _may_be_ragged(rows: pd.DataFrame) -> bool:
    """Tells whether a row may be longer than the header, or shorter, and so lack its last value."""
    return not isinstance(rows.index, pd.RangeIndex) or bool(rows.iloc[:, -1].isna().any())
