"""Faults for real processes of a step: who is who, killing one, and whether anything is left of them."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil

TESTS = Path(__file__).parents[1]
SHARED_MEMORY = Path("/dev/shm")
ENDS_WITHIN_S = 15.0
"""How soon a step must have ended after one of its processes was killed."""
JOB_ENDS_WITHIN_S = 5.0
"""How soon all that a step started must have ended after the step was told to end, or killed."""
NAME_LIMIT = 15
"""Characters of a process's name that the kernel keeps; replicas keep their last."""


class Processes:
    """All processes of the step that a process runs, and their shared memory, as they are now."""

    def __init__(self, step: int | None = None) -> None:
        self._all = psutil.Process(step).children(recursive=True)
        self.prefixes = {prefix for process in self._all for prefix in _prefixes(process.pid)}

    def replica(self, name: str) -> psutil.Process:
        """Returns the process of the replica `name`, not a child that it forked."""
        named = [process for process in self._all if _comm(process.pid) == name[-NAME_LIMIT:]]
        (found,) = (process for process in named if process.parent() not in named)
        return found

    def sampler(self, name: str) -> psutil.Process:
        """Returns a sampler of the trainer `name`."""
        return self.replica(name).children()[0]

    def alive(self) -> list[str]:
        """Names those that still run."""
        return [_comm(process.pid) for process in self._all if process.is_running() and not _zombie(process)]

    def segments(self) -> list[str]:
        """Names the shared memory that is still there."""
        return [path.name for path in SHARED_MEMORY.iterdir() if path.name.startswith(tuple(self.prefixes))]

    def assert_nothing_left(self) -> None:
        """Waits a moment for what was killed to be gone."""
        assert self._all
        assert self.prefixes
        wait_until(lambda: not self.alive(), "all processes to end")
        wait_until(lambda: not self.segments(), "the shared memory to be removed")


class KillAtEpoch:
    """Stands for `print_progress`: at the first line of an epoch it kills whom `choose` says, once."""

    def __init__(self, choose: Callable[[Processes], psutil.Process], *, at: str = "epoch 2 ") -> None:
        self._choose = choose
        self._at = at
        self.processes: Processes | None = None
        self.killed_at = 0.0

    def __call__(self, message: str, *, replica: str) -> None:
        if self._at in message and self.processes is None:
            self.processes = Processes()
            self.killed_at = time.monotonic()
            self._choose(self.processes).send_signal(signal.SIGKILL)

    def assert_ended_soon_with_nothing_left(self) -> None:
        """Call it when the step has ended."""
        assert time.monotonic() - self.killed_at < ENDS_WITHIN_S
        assert self.processes is not None
        self.processes.assert_nothing_left()


class RunningStep:
    """A step in a process of its own: `python -m <module> ARGUMENTS`, past its second epoch."""

    def __init__(self, module: str, *arguments: object) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", module, *map(str, arguments)],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={**os.environ, "PYTHONPATH": str(TESTS)},
        )
        assert self.process.stdout is not None
        assert any("epoch 2 " in line for line in self.process.stdout), "it ended before the second epoch"
        self.processes = Processes(self.process.pid)

    def end(self, how: signal.Signals) -> int:
        """Sends a signal to the step alone and returns its exit status; nothing of it may be left.

        All that it started must be gone within `JOB_ENDS_WITHIN_S`. Its own interpreter then takes more than
        a second of CPU to unload torch and DGL, and a multiple of that in time where the machine is busy.
        """
        try:
            self.process.send_signal(how)
            wait_until(lambda: not self.processes.alive(), "the job to end", JOB_ENDS_WITHIN_S)
            status = self.process.wait(ENDS_WITHIN_S)
            self.processes.assert_nothing_left()
        finally:
            self.process.kill()
            self.process.communicate()
        return status


def wait_until(condition: Callable[[], bool], what: str, within_s: float = 10.0) -> None:
    """Waits until a condition holds; fails when it takes longer than `within_s`."""
    deadline = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < deadline, f"waited {within_s:g} s for {what}"
        time.sleep(0.02)


def _comm(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text(encoding="ascii").rstrip("\n")
    except OSError:
        return ""


def _zombie(process: psutil.Process) -> bool:
    try:
        return bool(process.status() == psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return True


def _prefixes(pid: int) -> set[str]:
    maps = Path(f"/proc/{pid}/maps").read_text(encoding="utf-8", errors="replace")
    return set(re.findall(r"/dev/shm/(geokfp-[0-9a-f]+-)", maps))
