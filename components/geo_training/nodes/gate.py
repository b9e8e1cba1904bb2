"""Holds back who is far ahead of the others, by not reading from its connection until there is `Room`.

Its heartbeats wait behind what is held back, so that it is not silent meanwhile: the node does not listen.
TCP and the sender give up a peer that takes no bytes for a minute, so that nobody is held back that long.
"""

import threading
import time

from ..wire.units import RoundId
from .room import NotAwaited, Room

MOST_S = 15.0
"""Seconds after which something comes in in any case."""
THEN_BYTES = 1 << 20
"""What comes in then: enough for the system to tell the sender that there is room again."""


class Gate:
    """See the module; threads of connections wait here.

    Args:
        room: says who may come in.
        lock: held where the node's rounds are used, and by who calls anything here but `wait` and `end`.
        not_awaited: see `NotAwaited`; called with `lock` held.
    """

    def __init__(self, room: Room, lock: threading.Lock, not_awaited: NotAwaited) -> None:
        self._room = room
        self._lock = lock
        self._not_awaited = not_awaited
        self._waiting: list[_Waiting] = []
        self._free: dict[str, int] = {}
        self._ended = False

    def wait(self, peer: str, round_id: RoundId, num_bytes: int) -> float:
        """Waits until a peer may bring something to a round, and returns for how many seconds."""
        with self._lock:
            if self._ended or self._room.lets_in(peer, round_id, self._not_awaited):
                return 0.0
            if self._free.get(peer, 0) > 0:
                self._free[peer] -= num_bytes
                return 0.0
            began, waiting = time.monotonic(), _Waiting(peer, round_id, threading.Condition(self._lock))
            self._waiting.append(waiting)
            if not waiting.changed.wait_for(lambda: waiting.is_let_in, MOST_S):
                self._free[peer] = THEN_BYTES - num_bytes
                self._waiting.remove(waiting)
            return time.monotonic() - began

    def brought(self, peer: str, round_id: RoundId, num_bytes: int) -> None:
        """See `Room.brought`."""
        self._room.brought(peer, round_id, num_bytes)
        self._let_in()

    def finished(self, round_id: RoundId) -> None:
        """See `Room.finished`."""
        self._room.finished(round_id)
        self._let_in()

    def end(self) -> None:
        """Holds nobody back any more."""
        with self._lock:
            self._ended = True
            self._let_in()

    def _let_in(self) -> None:
        for waiting in list(self._waiting):
            if self._ended or self._room.lets_in(waiting.peer, waiting.round, self._not_awaited):
                waiting.is_let_in = True
                self._waiting.remove(waiting)
                waiting.changed.notify()


class _Waiting:
    def __init__(self, peer: str, round_id: RoundId, changed: threading.Condition) -> None:
        self.peer = peer
        self.round = round_id
        self.changed = changed
        self.is_let_in = False
