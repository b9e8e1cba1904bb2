"""What a connection has still to send, the most urgent message first. Knows nothing of rounds.

The order is that of P3 (Jayarajan et al., *Priority-based Parameter Propagation*, MLSys 2019): whole messages
are put before others, none is broken off. Messages of one priority leave in the order in which they came.
"""

import heapq
import threading
import time

from ..errors import LinkError
from ..wire.messages import NOTHING, Message
from .base import Connection

URGENT = 0
"""Priority of what is sent first: 0 and up, as in the heads of messages."""
LAST = 1 << 62
"""Priority of what is sent when all else has been."""
BEFORE_ALL = -1
"""Priority of the reason why a connection ends: nothing behind it counts."""

MOST_BYTES = 1 << 26
"""Bytes of values that wait at most, beside one message; who brings more waits for the link."""
_DIRECT_BYTES = 1 << 14
"""Up to so many bytes of values a caller sends by itself where nothing waits: handing over costs more."""


class Urgency:
    """Messages by priority, then by order; no thread, no clock."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, Message]] = []
        self._came = 0
        self.num_bytes = 0

    def __len__(self) -> int:
        return len(self._heap)

    def put(self, message: Message, priority: int) -> None:
        """Adds a message."""
        heapq.heappush(self._heap, (priority, self._came, message))
        self._came += 1
        self.num_bytes += value_bytes(message)

    def take(self) -> Message:
        """Removes and returns the most urgent message, of several the one that came first."""
        _, _, message = heapq.heappop(self._heap)
        self.num_bytes -= value_bytes(message)
        return message

    def clear(self) -> None:
        """Forgets all messages."""
        self._heap.clear()
        self.num_bytes = 0


class Outbox:
    """What one connection has to send; any thread may post.

    A thread of its own sends, from the first message on that is not sent at once. An error closes the
    connection, which whoever reads from it sees; what waited is forgotten, as after any lost connection.

    Args:
        connection: where messages go; nobody else sends there any more.
        name: of the thread.
    """

    def __init__(self, connection: Connection, name: str) -> None:
        self._connection = connection
        self._name = name
        self._changed = threading.Condition()
        self._waiting = Urgency()
        self._sending = False
        self._ended = False
        self._thread: threading.Thread | None = None

    def post(self, message: Message, priority: int = URGENT) -> None:
        """Sends a message in its turn; its values must not change before.

        Waits where more than `MOST_BYTES` wait, as long as the connection takes bytes: it has a deadline.

        Args:
            message: what to send.
            priority: smaller ones first.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._ended or self._has_room(message))
            if self._ended:
                return
            if self._sending or self._waiting or not _goes_at_once(message, priority):
                self._waiting.put(message, priority)
                self._ensure_thread()
                self._changed.notify_all()
                return
            self._sending = True
        self._send(message)

    def close(self, within_s: float) -> None:
        """Sends what waits, then closes the connection; may be called twice.

        Args:
            within_s: seconds for what waits; what is left then is not sent.
        """
        deadline = time.monotonic() + within_s
        with self._changed:
            self._changed.wait_for(
                lambda: self._ended or not (self._waiting or self._sending), deadline - time.monotonic()
            )
        self._end()

    def _has_room(self, message: Message) -> bool:
        own = value_bytes(message)
        return not own or not self._waiting or self._waiting.num_bytes + own <= MOST_BYTES

    def _ensure_thread(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name=f"{self._name} sends", daemon=True)
            self._thread.start()

    def _work(self) -> None:
        while True:
            with self._changed:
                # Without a deadline: it ends with the connection.
                self._changed.wait_for(lambda: self._ended or (self._waiting and not self._sending))
                if self._ended:
                    return
                message = self._waiting.take()
                self._sending = True
            self._send(message)

    def _send(self, message: Message) -> None:
        try:
            self._connection.send(message)
        except LinkError:
            self._end()
        finally:
            with self._changed:
                self._sending = False
                self._changed.notify_all()

    def _end(self) -> None:
        with self._changed:
            self._ended = True
            self._waiting.clear()
            self._changed.notify_all()
        self._connection.close()


def _goes_at_once(message: Message, priority: int) -> bool:
    # What may wait is also not worth that its caller waits for the link.
    return priority <= URGENT and value_bytes(message) <= _DIRECT_BYTES


def value_bytes(message: Message) -> int:
    """Returns the bytes of a message's values, 0 where it has none."""
    return int(getattr(message, "payload", NOTHING).num_bytes)
