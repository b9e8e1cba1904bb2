"""What workers leave behind while they train: weights, and when they had them.

The first worker of each site writes, and the trial reads while it writes::

    records/
      site-0/
        rows.jsonl     one row a snapshot: step, seconds, moment, engine_bytes, file
        000000.npy     all weights as one vector, float32
        000005.npy
      site-1/

Seconds count from the barrier after the initial weights are with all workers, without the time that writing
snapshots takes. Over shaped links nobody waits for an evaluation, so that no transfer goes on while the clock
stands still. Over links without limits, where no transfer lasts, a worker waits for `000005.judged` with its
clock stopped: else the evaluation would take processors from the training, or fall behind it.
"""

import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

ROWS = "rows.jsonl"
EVALUATION_S = 120.0
"""Seconds that a worker waits for an evaluation."""
POLL_S = 0.005


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
        waits: whether each snapshot is evaluated before the training goes on.
        clock: seconds on the monotonic clock.
    """

    def __init__(
        self, folder: Path, *, waits: bool = False, clock: Callable[[], float] = time.monotonic
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._waits = waits
        self._clock = clock
        self._began = 0.0
        self._saving_s = 0.0

    def start(self, weights: Any, engine_bytes: int | None = None) -> None:
        """Starts the clock, and saves the initial weights as step 0. Called right after the barrier."""
        self._began = self._clock()
        self.save(0, weights, engine_bytes)

    def save(self, step: int, weights: Any, engine_bytes: int | None = None) -> None:
        """Saves a snapshot; the training clock stands still meanwhile.

        Args:
            step: batches so far.
            weights: float32 vector.
            engine_bytes: what the system counted so far on the site's wide-area links.

        Raises:
            TimeoutError: nobody evaluated the snapshot.
        """
        moment = self._clock()
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
        if self._waits:
            self._await(judged_mark(self._folder / row.file))
        self._saving_s += self._clock() - moment

    def _await(self, mark: Path) -> None:
        deadline = time.monotonic() + EVALUATION_S
        while not mark.exists():
            if time.monotonic() > deadline:
                raise TimeoutError(f"{mark.name} was not there {EVALUATION_S:g} s after the snapshot")
            time.sleep(POLL_S)


def judged_mark(weights: Path) -> Path:
    """Returns the file whose existence says that a snapshot is evaluated."""
    return weights.with_suffix(".judged")


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
