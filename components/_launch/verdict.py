"""Which of several bad ends is the cause of the others; knows nothing of processes that still run."""

import os
import signal
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from .shared_memory import SHARED_MEMORY

_LOST_PEER = (
    "closed by peer",
    "closed by the peer",
    "connection closed",
    "connection reset",
    "connection refused",
    "connectionerror",
    "broken pipe",
    "brokenpipeerror",
    "socket closed",
    "eoferror",
    "linkclosederror",
    "deadlineerror",
    "distconnecterror",
)
"""What a cause says, in lower case, when another process was lost: gloo's words, Python's, DGL's and ours."""


@dataclass(frozen=True, slots=True)
class BadEnd:
    """A process that ended badly, or did not end in time."""

    name: str
    """The replica."""
    cause: str
    """One line."""

    def is_secondary(self) -> bool:
        """Tells whether it may only be what another's end did to it."""
        return _rank(self) > 0


def root_cause(ends: Iterable[BadEnd]) -> BadEnd:
    """Returns the first end that no other one explains, or the first of all.

    Args:
        ends: at least one, in the order in which they came.
    """
    return min(ends, key=_rank)


def describe(status: int, shared_memory: Path = SHARED_MEMORY) -> str:
    """Returns one line for an exit status, or for minus the number of the signal that killed."""
    if status >= 0:
        return f"ended with exit status {status}"
    try:
        name = signal.Signals(-status).name
    except ValueError:
        name = f"signal {-status}"
    hint = _room(shared_memory) if -status == signal.SIGBUS else ""
    return f"killed by {name}{hint}"


def _rank(end: BadEnd) -> int:
    text = end.cause.lower()
    if any(words in text for words in _LOST_PEER):
        return 2
    return 1 if text == "killed by sigabrt" else 0  # so a C++ thread dies of a connection that broke


def _room(folder: Path) -> str:
    """A full /dev/shm shows as SIGBUS at the first touch of a page, far from any message."""
    try:
        room = os.statvfs(folder)
    except OSError:
        return ""
    free, size = (blocks * room.f_frsize // 2**20 for blocks in (room.f_bavail, room.f_blocks))
    return f" ({folder} has {free} MB free of {size} MB)"
