"""The nodes that dial one: admitting them, reading what they send, answering. Knows nothing of rounds."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

from ..._launch import progress
from ..errors import (
    GeoError,
    IdentityError,
    KeepingError,
    LinkError,
    PeerError,
    ProtocolError,
    SilenceError,
)
from ..metrics import UNOBSERVED, Observer
from ..metrics.arrivals import ObservedTraffic
from ..transport.base import Connection, Listener, Traffic
from ..transport.node_names import speaks_for
from ..transport.outbox import BEFORE_ALL, URGENT, Outbox
from ..wire.block_messages import IN_BLOCKS
from ..wire.messages import (
    JOINED,
    Answer,
    Heartbeat,
    Join,
    Leave,
    Message,
    Push,
    Refusal,
    TrafficQuery,
    TrafficReport,
    Welcome,
)
from ..wire.units import RoundId
from .answer_blocks import block_bytes
from .heartbeats import Silence
from .lobby import Lobby
from .telling import Refusals

_TICK_S = 0.5
_JOIN_TIMEOUT_S = 10.0
_FLUSH_S = 2.0


class Parent(Protocol):
    """What children are to the node that they dial; called in the threads of their connections."""

    def take(self, peer: str, message: Message) -> bool:
        """Takes what a child sends; returns whether more may come.

        Raises:
            PeerError: the child must not send this; it is told why, and its connection ends.
        """

    def left(self, peer: str) -> None:
        """Called when a child has done its part."""

    def failed(self, error: GeoError) -> None:
        """Called when no child can come in any more, or what one sends cannot be kept."""

    def traffic(self) -> dict[str, Traffic]:
        """Returns what a child is told that asks for bytes."""


class Register(Protocol):
    """Who keeps the list of those who are there; called in the threads of their connections."""

    def admit(self, join: Join) -> int | None:
        """Lets a child in; returns its first round where it comes after the others have begun.

        Raises:
            ProtocolError: it cannot come in.
        """

    def lost(self, peer: str, *, was_silent: bool) -> None:
        """Called when a child's connection has ended, and no other one has taken its place."""

    def wait_for_room(self, peer: str, round_id: RoundId, num_bytes: int) -> float:
        """Called before values of a child are read; returns for how many seconds it has waited."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Door:
    """Who may come in."""

    name: str
    """The node that is dialled."""

    run: str
    """The run; peers of another are refused."""

    children: frozenset[str]
    """Nodes that may join."""

    observer: Observer = UNOBSERVED
    """Is told what comes and goes."""

    silence: Silence = field(default_factory=Silence)
    """How long they may say nothing."""

    say: Callable[[str], None] = progress
    """Takes lines about those who are turned away."""


@dataclass(slots=True, eq=False)
class _Child:
    connection: Connection
    outbox: Outbox


class Children:
    """The connections of a node's children; one thread a connection reads, one sends.

    Args:
        door: who may come in.
        listener: where they come in.
        parent: takes what they send.
        register: knows who may come in, and is told who is gone.
    """

    def __init__(self, door: Door, listener: Listener, parent: Parent, register: Register) -> None:
        self._door = door
        self._listener = listener
        self._parent = parent
        self._register = register
        self._lock, self._admitting = threading.Lock(), threading.Lock()
        self._lobby = Lobby()
        self._refusals = Refusals(door.name, door.say)
        self._here: dict[str, _Child] = {}
        self._traffic: dict[str, Traffic] = {}
        self._ended = threading.Event()
        self._accepting = threading.Thread(target=self._accept, name=f"{door.name} accepts", daemon=True)

    def begin(self) -> None:
        """Lets children in from now on; called once."""
        self._accepting.start()

    def end(self) -> None:
        """Lets nobody in any more, sends what waits and closes all connections."""
        self._ended.set()
        self._listener.close()
        self._accepting.join(2 * _TICK_S + 1.0)
        for child in self._all():
            child.outbox.close(_FLUSH_S)

    def present(self) -> set[str]:
        """Returns who is connected."""
        with self._lock:
            return set(self._here)

    def traffic(self) -> dict[str, Traffic]:
        """Returns the bytes of each child's link so far."""
        with self._lock:
            return dict(self._traffic)

    def send(self, peer: str, message: Message, priority: int = URGENT) -> None:
        """Sends in the message's turn; who is not connected asks again when it is back."""
        with self._lock:
            child = self._here.get(peer)
        if child is not None:
            if isinstance(message, Answer):
                self._door.observer.answered(
                    peer, message.round, message.payload, block_bytes(message.payload)
                )
            child.outbox.post(message, priority)

    def refuse(self, reason: str) -> None:
        """Tells all children that the node has given up."""
        for child in self._all():
            child.outbox.post(Refusal(reason), BEFORE_ALL)

    def attend(self, connection: Connection) -> None:
        """Serves one connection until it ends; called in a thread of its own."""
        peer, child = "", _Child(connection, Outbox(connection, f"{self._door.name}"))
        ended, was_silent = threading.Event(), False
        try:
            with self._lobby.waiting(connection):
                peer = self._admit(child)
            ended = self._door.silence.watch(connection, child.outbox, self._door.name)
            while self._take(peer, child, connection.receive()):
                pass
        except (PeerError, IdentityError) as error:
            self._turned_away(peer, connection, error)
            child.outbox.post(Refusal(str(error)), BEFORE_ALL)
        except LinkError as error:
            was_silent = isinstance(error, SilenceError)  # it may come back
        except KeepingError as error:
            self._parent.failed(error)  # what it took would not outlive this process
        finally:
            ended.set()
            with self._lock:
                is_last = self._here.get(peer) is child
                if is_last:
                    del self._here[peer]
                    self._register.lost(peer, was_silent=was_silent)
            child.outbox.close(0 if was_silent else _FLUSH_S)

    def _turned_away(self, peer: str, connection: Connection, error: GeoError) -> None:
        who = f"{peer} at {connection.peer}" if peer else connection.peer
        with self._lock:
            self._refusals.note(who, str(error), time.monotonic())

    def _all(self) -> list[_Child]:
        with self._lock:
            return list(self._here.values())

    def _accept(self) -> None:
        while not self._ended.is_set():
            try:
                connection = self._listener.accept(_TICK_S)
            except LinkError as error:
                if not self._ended.is_set():  # else it was closed because the work is done
                    self._parent.failed(error)
                return
            if connection is not None:
                self._lobby.enter(connection)
                threading.Thread(target=self.attend, args=(connection,), daemon=True).start()

    def _admit(self, child: _Child) -> str:
        connection, door = child.connection, self._door
        join = connection.receive(_JOIN_TIMEOUT_S)
        if not isinstance(join, Join):
            raise ProtocolError(f"first message is {type(join).__name__}, Join is needed")
        if join.run != door.run:
            raise ProtocolError(f"{join.sender} is of another run")
        if join.sender not in door.children:
            raise ProtocolError(f"{join.sender} is no child of {door.name} in the topology")
        if not speaks_for(connection.identity, join.sender):
            shown = sorted(connection.identity or ()) or "no node"
            raise ProtocolError(f"{join.sender} comes with the certificate of {shown}")
        with self._admitting:
            first_round = self._register.admit(join)
            with self._lock:
                observed = ObservedTraffic(link=join.sender, observer=door.observer)
                traffic = self._traffic.setdefault(join.sender, observed)
                traffic.add(connection.traffic)
                connection.traffic, connection.limits = traffic, JOINED
                connection.before_values = partial(self._register.wait_for_room, join.sender)
                earlier = self._here.pop(join.sender, None)  # what it still sends counts no more
            if earlier is not None:
                earlier.outbox.close(0)
            child.outbox.post(Welcome(door.name, first_round))
            with self._lock:  # after the welcome, which nothing may come before
                self._here[join.sender] = child
        return join.sender

    def _take(self, peer: str, child: _Child, message: Message) -> bool:
        with self._lock:
            if self._here.get(peer) is not child:
                return False  # a later process or connection has taken its place
        if isinstance(message, Heartbeat):
            return True
        if isinstance(message, TrafficQuery):
            links = sorted(self._parent.traffic().items())
            report = TrafficReport(tuple((name, t.sent_bytes, t.received_bytes) for name, t in links))
            child.outbox.post(report)
            return True
        if isinstance(message, Leave):
            child.outbox.post(message)  # so that the child knows that its word has come
            self._parent.left(peer)
            return False
        if isinstance(message, Push) and message.payload.codec != IN_BLOCKS:  # else who counts the blocks
            self._door.observer.pushed(peer, message.round, message.payload)
        return self._parent.take(peer, message)
