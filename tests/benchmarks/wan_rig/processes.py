"""The processes of one trial, each at its endpoint; all are killed at the end, whatever ended it."""

import contextlib
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

from geokfp.components._launch import describe
from geokfp.components._launch.log_reader import LogReader

from .errors import TrialFailed
from .network import Network


@dataclass(frozen=True, kw_only=True, slots=True)
class Process:
    """One process to start."""

    name: str
    """Unlike the others'; its log is named after it."""
    endpoint: str
    """Where it runs: `root` or a site."""
    command: tuple[str, ...]
    """What runs."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Beside what all processes share."""
    finishes: bool = False
    """Whether it ends by itself when the training is over; the others serve until they are killed."""


class Processes:
    """Starts processes on entering and kills them on leaving the `with` block.

    Args:
        network: where they run.
        planned: what to start.
        logs: folder of what they print; it is made.
    """

    def __init__(self, network: Network, planned: Sequence[Process], logs: Path) -> None:
        self._network = network
        self._planned = planned
        self._logs = logs
        self._started: dict[str, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> "Processes":
        self._logs.mkdir(parents=True)
        try:
            for process in self._planned:
                self._start(process)
        except OSError:
            self._kill()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._kill()

    def all_finished(self) -> bool:
        """Tells whether all that finish have ended.

        Raises:
            TrialFailed: a process ended badly; names it, with its last line.
        """
        left = 0
        for process in self._planned:
            status = self._started[process.name].poll()
            if status:
                raise TrialFailed(f"{process.name} {describe(status)}: {self.last_line(process.name)}")
            left += process.finishes and status is None
        return not left

    def last_line(self, name: str) -> str:
        """Returns the last line that a process printed."""
        lines = LogReader(self._logs / f"{name}.log").last_lines()
        return lines[-1] if lines else "it printed nothing"

    def _start(self, process: Process) -> None:
        command = self._network.within(process.endpoint, process.command)
        with (self._logs / f"{process.name}.log").open("wb") as log:
            self._started[process.name] = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, **process.environment},
                start_new_session=True,
            )

    def _kill(self) -> None:
        for started in self._started.values():
            with contextlib.suppress(ProcessLookupError):
                os.killpg(started.pid, signal.SIGKILL)
        for started in self._started.values():
            started.wait()
