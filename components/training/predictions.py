"""The predictions artifact, written by the step, or by its pods, each a table of its part. Knows no models.

Its folder::

    manifest.json          kind geokfp.predictions, version 1: number of rows; written last
    predictions.parquet    the table; of pods a folder of them in order, part-00000.parquet ...

Pandas and others read `predictions.parquet` alike, whether it is a file or a folder. Without a
manifest the artifact is not whole.
"""

import json
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from .._files import Folder, InputError, new_directory, new_file, sha256, write_manifest
from .._files.manifest import NAME, manifest_text
from .._launch import progress

PREDICTIONS = "predictions.parquet"
KIND = "geokfp.predictions"
VERSION = 1


@dataclass(frozen=True, kw_only=True, slots=True)
class GivenPart:
    """What a pod tells of the table that it wrote."""

    name: str
    """Of the file in the artifact."""
    checksum: str
    """SHA-256 of the file."""
    num_rows: int
    """Rows of the table."""

    def write(self, path: Path) -> None:
        """Writes it as a small file, for the step."""
        with new_file(path) as temporary:
            temporary.write_text(json.dumps(asdict(self)), encoding="utf-8")

    @classmethod
    def read(cls, path: Path) -> "GivenPart":
        """Reads what `write` wrote."""
        return cls(**json.loads(path.read_text(encoding="utf-8")))


def given_name(part: int) -> str:
    """Returns the name of the file that a pod tells of its table in, beside its outcome."""
    return f"given-{part}.json"


def write_tables(path: Path, tables: Sequence[pd.DataFrame]) -> None:
    """Writes the artifact, whole or not at all.

    Args:
        path: the folder to write.
        tables: what becomes one table.
    """
    table = pd.concat(tables, ignore_index=True)
    with new_directory(path) as folder:
        _write(table, folder / PREDICTIONS)
        write_manifest(folder, kind=KIND, version=VERSION, body={"num_rows": len(table)})


def put_part(uri: str, number: int, table: pd.DataFrame) -> GivenPart:
    """Writes one part's table straight to where the artifact goes.

    Args:
        uri: path or URI of the artifact.
        number: of the part among all of the artifact; tables are read in this order.
        table: its rows.

    Raises:
        InputError: it cannot be written there.
    """
    name = f"{PREDICTIONS}/part-{number:05}.parquet"
    with tempfile.TemporaryDirectory(prefix="geokfp-") as folder:
        path = Path(folder) / "part.parquet"
        _write(table, path)
        Folder(uri).put_file(path, name)
        return GivenPart(name=name, checksum=sha256(path), num_rows=len(table))


def complete(uri: str, given: Iterable[GivenPart]) -> None:
    """Writes the manifest of an artifact whose tables pods have written, which makes it whole.

    Args:
        uri: path or URI of the artifact.
        given: what the pods told.
    """
    parts = sorted(given, key=lambda part: part.name)
    files = {part.name: part.checksum for part in parts}
    body = {"num_rows": sum(part.num_rows for part in parts)}
    text = manifest_text(kind=KIND, version=VERSION, body=body, files=files)
    Folder(uri).replace(NAME, text.encode())


@contextmanager
def completed_or_removed(uri: str) -> Iterator[None]:
    """Sees to it that only a training that ends well, and calls `complete`, leaves an artifact.

    Args:
        uri: path or URI of the artifact that pods write; empty when they write none.

    Raises:
        InputError: an older artifact that is there cannot be removed.
    """
    if not uri:
        yield
        return
    folder = Folder(uri)
    folder.discard(NAME)  # its tables stay: of a step that is run again, pods may have written them already
    done = False
    try:
        yield
        done = True
    finally:
        if not done:
            try:
                folder.remove()
            except InputError as error:  # it hides no failure; without a manifest it is no artifact
                progress(f"what pods have written stays, and is not whole: {error}")


def keep_judged(path: Path) -> None:
    """Leaves of the outcome of a part the rows that have a split: metrics need no others.

    Args:
        path: an `outcome-*.npz`; it is replaced.
    """
    with np.load(path, allow_pickle=False) as file:
        found = dict(file)
    judged = found["split"] != 0
    with new_file(path) as temporary, open(temporary, "wb") as kept:
        np.savez(kept, **{name: values[judged] for name, values in found.items()})


def _write(table: pd.DataFrame, path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    found = pa.Table.from_pandas(table, preserve_index=False)
    # A column that is empty here is text elsewhere: tables of one folder must agree.
    fields = [pa.field(f.name, pa.string()) if pa.types.is_null(f.type) else f for f in found.schema]
    pq.write_table(found.cast(pa.schema(fields, metadata=found.schema.metadata)), path)
