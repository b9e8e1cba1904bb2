"""The folder of champions: which model is the best so far, and all that were.

Drawing of the folder::

    champions/
      champion.json                     the record of the newest generation, for whoever serves the model
      generations/
        00000001.json                   the records, one a promotion; the greatest number is the champion
        00000002.json
      versions/
        20261129T000000Z-3f0c21d07a94/  a window's start and a checksum
          trained/                      geokfp.trained_gnn: what the next run is held against and starts from
          exported/                     geokfp.exported_model: what is served

A record is `{"kind": "geokfp.champion", "generation", "version", "window", "metric", "score", "promoted"}`.
A version is whole before a record names it, and neither is ever changed. A promotion is a compare-and-swap:
it writes the record after the one that it has seen, which only one of several runs can (`Folder.create`).
`champion.json` follows it; who needs certainty reads the generations. Knows nothing of who wins.
"""

import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from .._files import ArtifactError, Folder
from .._files.manifest import NAME

KIND = "geokfp.champion"
POINTER, GENERATIONS, VERSIONS = "champion.json", "generations", "versions"
TRAINED, EXPORTED = "trained", "exported"
_FILE = re.compile(r"(\d+)\.json")


@dataclass(frozen=True, kw_only=True, slots=True)
class Record:
    """A promotion."""

    generation: int
    """Number of the promotion, from 1."""
    version: str
    """Folder of the model in `versions`."""
    window: str
    """Start of the window that it was trained on."""
    metric: str
    """What decided."""
    score: float
    """Its score on the window's test nodes."""
    promoted: str
    """When, ISO 8601."""


class Champions:
    """The folder, which other runs may change at any time.

    Args:
        uri: its path or URI.
    """

    def __init__(self, uri: str) -> None:
        self._folder = Folder(uri)
        self._generations = self._folder.within(GENERATIONS)

    def newest(self) -> Record | None:
        """Returns the champion's record; None before the first promotion.

        Raises:
            ArtifactError: a record cannot be understood.
        """
        return next(self.records(), None)

    def records(self) -> Iterator[Record]:
        """Yields all records, newest first."""
        numbers = {
            int(found[1]): name for name in self._generations.names() if (found := _FILE.fullmatch(name))
        }
        for number in sorted(numbers, reverse=True):
            yield self._read(numbers[number])

    def trained_uri(self, record: Record) -> str:
        """Returns where a record's trained GNN lies."""
        return f"{self._folder.uri}/{VERSIONS}/{record.version}/{TRAINED}"

    def put(self, version: str, trained: Path, exported: Path) -> None:
        """Writes a version, unless it is there; no record names it yet.

        Args:
            version: its name.
            trained: the trained GNN.
            exported: the same, exported.
        """
        folder = self._folder.within(VERSIONS).within(version)
        folder.within(EXPORTED).put_artifact(exported)
        folder.within(TRAINED).put_artifact(trained)

    def claim(self, record: Record) -> bool:
        """Makes a version the champion, if nobody has written a record of this generation.

        Returns:
            Whether it was done; False where another run has been faster.
        """
        return self._generations.create(f"{record.generation:08d}.json", _bytes(record))

    def point(self) -> None:
        """Lets `champion.json` follow the newest record, whoever else does the same meanwhile."""
        written = 0
        while (newest := self.newest()) is not None and newest.generation > written:
            self._folder.replace(POINTER, _bytes(newest))
            written = newest.generation

    def _read(self, name: str) -> Record:
        place, text = f"{self._generations.uri}/{name}", self._generations.read(name)
        try:
            document = json.loads(text or b"")
            if document.pop("kind") != KIND:
                raise ArtifactError(f"{place}: kind is not {KIND!r}")
            return Record(**document)
        except (UnicodeDecodeError, json.JSONDecodeError, AttributeError, KeyError, TypeError) as error:
            raise ArtifactError(f"{place}: not the record of a champion ({error})") from error


def version_name(window: str, trained: Path, exported: Path) -> str:
    """Returns the name of a version: the same whenever the same artifacts are promoted again."""
    content = hashlib.sha256()
    for artifact in (trained, exported):
        content.update((artifact / NAME).read_bytes())
    return f"{re.sub('[-:]', '', window)}-{content.hexdigest()[:12]}"


def _bytes(record: Record) -> bytes:
    return (json.dumps({"kind": KIND, **asdict(record)}, indent=2) + "\n").encode()
