"""What workers leave behind while they train: weights, and when they had them.

The first worker of each site writes, and the trial reads while it writes::

    records/
      site-0/
        rows.jsonl     one row a snapshot: step, seconds, moment, engine_bytes, file
        000000.npy     all weights as one vector, float32
        000005.npy
      site-1/

Seconds count from the barrier after the initial weights are with all workers, without the time that taking
and writing snapshots takes. Nobody waits for an evaluation, so that no transfer goes on while the clock
stands still.
"""

import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

ROWS = "rows.jsonl"

Snapshot: TypeAlias = Callable[[], tuple[Any, int | None]]
"""Gives the weights, a float32 vector, and the bytes that the system counted so far on the site's wide-area
links, None where it counts none."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """One snapshot."""

    site: str
    """Whose weights."""
    step: int
    """Batches that the worker has trained on."""
    seconds: float
    """Of training so far."""
    moment: float
    """When, on the machine's monotonic clock, which all its processes share."""
    engine_bytes: int | None
    """Bytes that the system itself counted on this site's wide-area links so far; None where it does not."""
    file: str
    """Name of the weights' file."""


class Recorder:
    """Writes one site's records.

    Args:
        folder: the site's folder; it is made.
        clock: seconds on the monotonic clock.
    """

    def __init__(self, folder: Path, clock: Callable[[], float] = time.monotonic) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._clock = clock
        self._began = 0.0
        self._saving_s = 0.0

    def start(self, snapshot: Snapshot) -> None:
        """Starts the clock, and saves the initial weights as step 0. Called right after the barrier."""
        self._began = self._clock()
        self.save(0, snapshot)

    def save(self, step: int, snapshot: Snapshot) -> None:
        """Saves a snapshot; the training clock stands still meanwhile.

        Args:
            step: batches so far.
            snapshot: takes it.
        """
        moment = self._clock()
        weights, engine_bytes = snapshot()
        row = Row(
            site=self._folder.name,
            step=step,
            seconds=moment - self._began - self._saving_s,
            moment=moment,
            engine_bytes=engine_bytes,
            file=f"{step:06}.npy",
        )
        np.save(self._folder / row.file, np.asarray(weights, np.float32))
        with (self._folder / ROWS).open("a", encoding="utf-8") as rows:
            rows.write(json.dumps(asdict(row)) + "\n")
        self._saving_s += self._clock() - moment


class Follower:
    """Reads one site's records while they are written."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._offset = 0

    def new_rows(self) -> list[Row]:
        """Returns the rows written since the last call; a half-written one is left for the next."""
        path = self._folder / ROWS
        if not path.exists():
            return []
        with path.open("rb") as file:
            file.seek(self._offset)
            whole = file.read().rpartition(b"\n")[0]
        if not whole:
            return []
        self._offset += len(whole) + 1
        return [Row(**json.loads(line)) for line in whole.split(b"\n")]

    def path(self, row: Row) -> Path:
        """Returns the file of a snapshot's weights."""
        return self._folder / row.file
