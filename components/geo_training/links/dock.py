"""What comes in blocks to a node from its children, and goes to them, beside whole messages (DGT).

Blocks come over the connections and, where `open` was called, in datagrams. Knows nothing of rounds.
"""

import threading
import time
from collections.abc import Callable

from ..errors import ProtocolError
from ..scheduling.dgt import MOST_BLOCK_BYTES
from ..scheduling.inbox import Inbox
from ..transport.base import Address, Traffic
from ..transport.datagram import DatagramLink, DatagramSocket
from ..transport.sealing import DOWN, UP, sealing
from ..wire.block_messages import IN_BLOCKS, Beside, Blocks, Received
from ..wire.messages import Answer, Array, Message, Push
from ..wire.units import RoundId, Unit
from .answer_blocks import CutAnswer, cut_answer

_FEWEST_BYTES = 8 * MOST_BLOCK_BYTES
"""Answers of fewer travel whole: to ask for what is missing takes a round trip."""


class _Beside:
    """The datagrams of one child, and the answers of which it has not said that they came."""

    def __init__(self, name: bytes, link: DatagramLink) -> None:
        self.name = name
        self.link = link
        self.under_way: dict[tuple[str, Unit], CutAnswer] = {}
        self.repaired: set[tuple[str, Unit]] = set()


class Dock:
    """The blocks of one node's children; any thread may call it.

    Args:
        name: the node.
        send: sends a message to a child over its connection, in its turn.
    """

    def __init__(self, name: str, send: Callable[[str, Message, int], None]) -> None:
        self._name = name
        self._send = send
        self._inbox = Inbox()
        self._lock = threading.Lock()
        self._socket: DatagramSocket | None = None
        self._secret = False
        self._children: dict[str, _Beside] = {}
        self._past: dict[str, Traffic] = {}

    def open(self, address: Address, *, secret: bool) -> None:
        """Takes datagrams from now on; called once, before children come in.

        Args:
            address: where the node listens.
            secret: whether its connections are encrypted, and so are datagrams.

        Raises:
            LinkClosedError: the address cannot be had.
        """
        self._secret = secret
        self._socket = DatagramSocket(address)

    def take(self, peer: str, message: Message) -> None:
        """Takes a message of blocks that came over a child's connection.

        Raises:
            ProtocolError: it is none, or does not fit.
        """
        match message:
            case Blocks():
                self._inbox.take(peer, message, time.monotonic())
            case Beside():
                self._open_beside(peer, message)
            case Received():
                self._complete(peer, message)
            case _:
                raise ProtocolError(f"{peer} sends {type(message).__name__}, which a node does not take")

    def values(self, peer: str, push: Push) -> tuple[Array | None, int]:
        """Returns the values of a push, of blocks those that have come; None when it brings none.

        Beside them it returns the bytes of the payloads of these blocks, 0 where it came whole.

        Raises:
            ProtocolError: the payload is not what it should be.
        """
        if push.payload.codec == IN_BLOCKS and self._socket is not None:
            self._socket.catch_up()
        return self._inbox.values(peer, push.round, push.payload)

    def answer(self, peer: str, answer: Answer) -> None:
        """Sends a round's result, after which blocks of the child were counted in it."""
        counted = self._inbox.counted(peer, answer.round)
        if counted is not None:
            self._inbox.answered(peer, answer.round)
            self._send(peer, Received(answer.round, counted), answer.priority)
        with self._lock:
            beside = self._children.get(peer)
        if beside is None or not beside.link.is_open or answer.payload.num_bytes < _FEWEST_BYTES:
            self._send(peer, answer, answer.priority)
            return
        cut = cut_answer(answer, MOST_BLOCK_BYTES)
        with self._lock:
            beside.under_way[_place(answer.round)] = cut
            beside.repaired.discard(_place(answer.round))
        then = self._send
        beside.link.send([cut.blocks], lambda: then(peer, cut.marker, answer.priority), answer.priority)

    def tick(self, now: float) -> None:
        """Drops what has waited for too long; called from time to time."""
        self._inbox.tick(now)

    def traffic(self) -> dict[str, Traffic]:
        """Returns the bytes of datagrams by child."""
        with self._lock:
            total = {peer: Traffic(t.sent_bytes, t.received_bytes) for peer, t in self._past.items()}
            for peer, beside in self._children.items():
                total.setdefault(peer, Traffic()).add(beside.link.traffic)
        return total

    def close(self) -> None:
        """Takes no datagrams any more."""
        if self._socket is not None:
            self._socket.close()

    def _open_beside(self, peer: str, message: Beside) -> None:
        if self._socket is None:
            return  # the child's probes do not come back, and it sends all over its connection
        down, up = (sealing(message.key, way, secret=self._secret) for way in (DOWN, UP))

        def take(block: Message) -> None:
            if isinstance(block, Blocks):
                self._take_datagram(peer, block)

        link = self._socket.open(message.link, (down, up), take, peer)
        with self._lock:
            before = self._children.get(peer)
            self._children[peer] = _Beside(message.link, link)
            if before is not None:
                self._past.setdefault(peer, Traffic()).add(before.link.traffic)
        if before is not None:
            self._socket.forget(before.name)

    def _take_datagram(self, peer: str, message: Blocks) -> None:
        try:
            self._inbox.take(peer, message, time.monotonic())
        except ProtocolError:
            return  # not counted, as if it had not come: its sender is told

    def _complete(self, peer: str, message: Received) -> None:
        with self._lock:
            beside = self._children.get(peer)
            cut = None if beside is None else beside.under_way.get(_place(message.round))
            if beside is None or cut is None or cut.marker.round != message.round:
                return
            num_blocks = cut.cut.num_blocks
            missing = [number for number in range(num_blocks) if number not in message.numbers]
            is_first = _place(message.round) not in beside.repaired
            beside.repaired.add(_place(message.round))
            if not missing:
                del beside.under_way[_place(message.round)]
        if is_first:
            beside.link.told(num_blocks, num_blocks - len(missing))
        for number in missing:
            self._send(peer, cut.block(number), cut.marker.priority)
        if missing:
            self._send(peer, cut.marker, cut.marker.priority)


def _place(round_id: RoundId) -> tuple[str, Unit]:
    return round_id.scope, round_id.unit
