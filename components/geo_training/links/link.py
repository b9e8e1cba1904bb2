"""The upkeep of one connection by the end that dials it: join, read, send, and join anew when it was lost.

A connection that ends is made anew within `reconnect_s`. Knows nothing of what the messages are about.
"""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

from ..errors import GeoError, LinkClosedError, LinkError, PeerError, ProtocolError, RefusedError
from ..metrics import UNOBSERVED, Observer
from ..metrics.arrivals import ObservedTraffic
from ..transport.base import Address, Connection, Traffic
from ..transport.outbox import LAST, URGENT, Outbox
from ..wire.messages import JOINED, Heartbeat, Join, Leave, Message, Refusal, Welcome
from .heartbeats import Silence
from .telling import Patience

LEAVE_S = 10.0
"""Seconds that a peer has to read what was sent last."""
_FLUSH_S = 2.0
_BACKOFF_S = (0.02, 0.05, 0.1, 0.2, 0.5, 1.0)


@dataclass(frozen=True, kw_only=True, slots=True)
class Ends:
    """Who is at the two ends of a link."""

    name: str
    """Node that dials."""

    peer: str
    """Node that is dialled."""

    run: str
    """The run; a node of another run refuses it."""

    reconnect_s: float
    """Seconds for which a connection is tried, at the start and when it was lost."""

    observer: Observer = UNOBSERVED
    """Is told what comes in."""

    silence: Silence = field(default_factory=Silence)
    """How long the peer may say nothing."""

    has_begun: bool = False
    """Whether it goes on with what an earlier process has begun."""


class Listening(Protocol):
    """What a link tells, in its own thread."""

    def take(self, message: Message) -> None:
        """Called with each message, in their order.

        Raises:
            PeerError: the peer must not send this; `lost` is called then.
        """

    def rejoined(self) -> None:
        """Called when the connection was lost and made anew: what was on the way is gone."""

    def lost(self, error: GeoError) -> None:
        """Called once, when the link is given up; nothing is called afterwards."""


class Link:
    """A connection to the node that is dialled. Any thread may send; one of its own reads.

    Args:
        ends: who is at the ends.
        dial: makes a connection to the peer, trying once; may raise `LinkError`.
        clock: seconds on a clock that never goes back.

    Raises:
        LinkError: the peer cannot be reached within `reconnect_s`.
        RefusedError: the peer wants no part of us.

    Attributes:
        has_begun: whether a later connection goes on with what an earlier one has begun, set by the user.
        first_round: the round to begin with where the others have begun before; None at the start of all.
    """

    def __init__(
        self, ends: Ends, dial: Callable[[], Connection], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._ends = ends
        self._dial = dial
        self._clock = clock
        self._closing = threading.Event()
        self._traffic = ObservedTraffic(link=ends.name, observer=ends.observer)
        self._incarnation = time.time_ns()
        self._joined = self._is_leaving = False
        self.has_begun = ends.has_begun
        self.first_round: int | None = None
        self._beating = threading.Event()
        self._connection, self._outbox = self._join()
        self._reader: threading.Thread | None = None

    def read(self, listening: Listening) -> None:
        """Begins to read; called once."""
        name = f"{self._ends.name} reads"
        self._reader = threading.Thread(target=self._read, args=(listening,), name=name, daemon=True)
        self._reader.start()

    @property
    def traffic(self) -> Traffic:
        """Bytes of this link so far, as this end counts them."""
        return Traffic(self._traffic.sent_bytes, self._traffic.received_bytes)

    @property
    def reached(self) -> Address | None:
        """Where the peer was dialled, of the addresses behind its name; None where it is not known."""
        return self._connection.reached

    def send(self, message: Message, priority: int = URGENT) -> None:
        """Sends in the message's turn; what a lost connection takes with it, `rejoined` is there for."""
        self._outbox.post(message, priority)

    def part(self, message: Message, priority: int) -> None:
        """Sends a last message and waits for the peer to close, so that it has read all; then `close`."""
        if not self._closing.is_set():
            self._closing.set()
            self._outbox.post(message, priority)
            self._wait_for_reader(LEAVE_S)
        self.close()

    def leave(self) -> None:
        """Tells the peer that our part is done, over a new connection where this one is lost; then `close`.

        A peer that is not reached within `reconnect_s` is left without that.
        """
        if not self._closing.is_set():
            self._is_leaving = True
            self._outbox.post(Leave(self._ends.name), LAST)
            self._wait_for_reader(self._ends.reconnect_s + LEAVE_S)
        self.close()

    def close(self) -> None:
        """Ends the connection; may be called twice."""
        self._closing.set()
        self._beating.set()
        self._outbox.close(_FLUSH_S)
        self._wait_for_reader(LEAVE_S)

    def drop(self) -> None:
        """Ends the connection at once; the reader sees it."""
        self._connection.close()

    def _wait_for_reader(self, seconds: float) -> None:
        if self._reader is not None and self._reader is not threading.current_thread():
            self._reader.join(seconds)

    def _join(self) -> tuple[Connection, Outbox]:
        ends, deadline, attempt = self._ends, self._clock() + self._ends.reconnect_s, 0
        patience = Patience(self._clock())
        while True:
            try:
                connection = self._join_once()
                outbox = Outbox(connection, ends.name)
                self._beating = ends.silence.watch(connection, outbox, ends.name)
                return connection, outbox
            except LinkError as error:
                if self._clock() >= deadline or self._closing.is_set():
                    raise LinkClosedError(
                        f"{ends.peer}: not reached within {ends.reconnect_s:.0f} s ({error})"
                    ) from error
                patience.check(self._clock(), partial(_unreached, ends.peer, error))
            self._closing.wait(_BACKOFF_S[min(attempt, len(_BACKOFF_S) - 1)])
            attempt += 1

    def _join_once(self) -> Connection:
        connection = self._dial()
        self._traffic.add(connection.traffic)
        connection.traffic = self._traffic
        try:
            connection.send(Join(self._ends.name, self._ends.run, self._incarnation, self.has_begun))
            reply = connection.receive(self._ends.silence.seconds or self._ends.reconnect_s)
            if isinstance(reply, Refusal):
                raise RefusedError(f"{self._ends.peer}: {reply.reason}")
            if not isinstance(reply, Welcome):
                raise ProtocolError(f"{self._ends.peer} greets with {type(reply).__name__}")
            connection.limits = JOINED
        except GeoError:
            connection.close()
            raise
        if not self._joined:
            self.first_round, self._joined = reply.first_round, True
        return connection

    def _read(self, listening: Listening) -> None:
        while True:
            try:
                message = self._connection.receive()
                if isinstance(message, Leave) and self._is_leaving:
                    return
                if not isinstance(message, Heartbeat):
                    listening.take(message)
            except LinkError:
                if not self._rejoin(listening):
                    return
            except PeerError as error:
                self._beating.set()
                self._connection.close()
                listening.lost(error)
                return

    def _rejoin(self, listening: Listening) -> bool:
        self._beating.set()
        self._outbox.close(0)
        if self._closing.is_set():
            return False
        try:
            self._connection, self._outbox = self._join()
        except GeoError as error:
            listening.lost(error)
            return False
        listening.rejoined()
        if self._is_leaving:
            self._outbox.post(Leave(self._ends.name), LAST)
        return True


def _unreached(peer: str, error: LinkError) -> str:
    return f"{peer} ({error})"
