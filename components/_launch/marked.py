"""Finding all processes of a job by a mark in their environment, whoever their parent is by now."""

import os
import signal
import time
from pathlib import Path

from .environment import JOB_MARK

_PAUSE_S = 0.01


def kill_marked(mark: str, *, within_s: float = 1.0) -> None:
    """Kills every process that was started with the mark, except this one, and waits until they are gone.

    It finds those that left the process group of their replica, or lost their parent.

    Args:
        mark: value of `JOB_MARK` in their environment.
        within_s: seconds after which it stops to look (a process may hang in the kernel).
    """
    needle = f"{JOB_MARK}={mark}".encode()
    until = time.monotonic() + within_s
    while (pids := _find(needle)) and time.monotonic() < until:
        for pid in pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        time.sleep(_PAUSE_S)


def _find(needle: bytes) -> list[int]:
    own = os.getpid()
    pids = (int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit())
    return [pid for pid in pids if pid != own and needle in _environment(pid)]


def _environment(pid: int) -> list[bytes]:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:  # ended, or another user's
        return []
