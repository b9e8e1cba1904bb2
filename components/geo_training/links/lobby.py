"""Connections whose peers have not said who they are: a bounded number, the oldest of which makes room.

Who is honest joins within a moment, so that it is rarely the oldest, however many come that are not. Knows
nothing of rounds.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from ..transport.base import Connection

MOST_WAITING = 64
"""Each takes a thread and less than 256 KiB, until it has joined or its time is over."""


class Lobby:
    """See the module; any thread may call it.

    Args:
        most: connections that wait at once.
    """

    def __init__(self, most: int = MOST_WAITING) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._waiting: dict[int, Connection] = {}

    def enter(self, connection: Connection) -> None:
        """Lets a connection wait; called before its thread is started, so that those are bounded too."""
        with self._lock:
            self._waiting[id(connection)] = connection
            oldest = next(iter(self._waiting.values())) if len(self._waiting) > self._most else None
            if oldest is not None:
                del self._waiting[id(oldest)]
        if oldest is not None:
            oldest.close()

    @contextmanager
    def waiting(self, connection: Connection) -> Iterator[None]:
        """Counts a connection that has entered until the block ends."""
        try:
            yield
        finally:
            with self._lock:
                if self._waiting.get(id(connection)) is connection:
                    del self._waiting[id(connection)]
