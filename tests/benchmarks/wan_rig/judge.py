"""Accuracy of saved weights, found out beside the training."""

import subprocess
import sys
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from .errors import RigError

_ENDED = "the process that evaluates weights ended; see evaluator.log"


class Judge(Protocol):
    """Judges weights in the order in which they are handed over. Called by one thread, during a trial."""

    def submit(self, weights: Path) -> None:
        """Hands over a file of weights, each once; returns at once."""

    def accuracy(self, weights: Path) -> float | None:
        """Returns what was found of a file that was handed over, or None for not yet.

        Raises:
            RigError: the judge can judge no more.
        """


class IdleJudge:
    """Judges in a process of its own, which gets only the processor time that nobody else wants."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process
        self._waiting: deque[Path] = deque()
        self._known: dict[Path, float] = {}
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def submit(self, weights: Path) -> None:
        """Hands over a file of weights."""
        assert self._process.stdin is not None
        self._waiting.append(weights)
        try:
            self._process.stdin.write(f"{weights}\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise RigError(_ENDED) from None

    def accuracy(self, weights: Path) -> float | None:
        """Returns what was found, or None for not yet."""
        if weights not in self._known and not self._reader.is_alive():
            raise RigError(_ENDED)
        return self._known.get(weights)

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._known[self._waiting.popleft()] = float(line)


@contextmanager
def idle_judge(data: Path, folder: Path, environment: dict[str, str]) -> Iterator[IdleJudge]:
    """Starts a judge, and ends it.

    Args:
        data: folder of the images.
        folder: where `evaluator.log` goes.
        environment: all its variables.
    """
    with (folder / "evaluator.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "wan_rig.evaluator", str(data)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            env=environment,
        )
    try:
        yield IdleJudge(process)
    finally:
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout):
            assert stream is not None
            stream.close()
