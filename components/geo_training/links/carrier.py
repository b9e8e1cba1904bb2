"""How a client's pushes travel and its answers come: whole, or in blocks of which some go in datagrams (DGT).

In blocks, a push follows its blocks as their end marker; `Received`, before the answer, says which of them
were counted. An answer may come in datagrams too: what is missing is asked for, so that it is always whole,
the same at every site.
"""

import secrets
import threading
import time
from typing import Protocol

from ..compression import Compressor
from ..errors import LinkClosedError, ProtocolError
from ..scheduling.differential import Differential
from ..transport.base import Address, Traffic
from ..transport.datagram import DatagramLink, DatagramSocket, fits
from ..transport.sealing import DOWN, UP, sealing
from ..wire.block_messages import KEY_BYTES, LINK_BYTES, Beside, Blocks, Received
from ..wire.messages import Answer, Array, Message, Payload, Push
from ..wire.units import RoundId
from .answer_blocks import AnswerInbox, is_cut
from .link import Link


class Carrier(Protocol):
    """What a client sends by; called by any of its threads."""

    @property
    def traffic(self) -> Traffic:
        """Bytes that travelled beside the link."""

    def joined(self, link: Link) -> None:
        """Called with the link when it is made, and when it was made anew."""

    def payload(self, round_id: RoundId, values: Array, weight: float) -> Payload:
        """Returns what stands for the values in their push; called once a round."""

    def block_bytes(self, round_id: RoundId) -> int:
        """Returns the bytes of the blocks that the round's payload only ends; called after `payload`."""

    def send(self, push: Push, *, again: bool = False) -> None:
        """Sends a push, with `again` one of which nothing has come."""

    def take(self, message: Message) -> None:
        """Takes a message of blocks."""

    def answered(self, answer: Answer) -> Answer | None:
        """Returns an answer whole; None while some of it is under way.

        Raises:
            ProtocolError: the peer does not say what it has counted.
        """

    def close(self) -> None:
        """Ends what it has beside the link; may be called twice."""


class Whole:
    """Sends pushes whole; see `Carrier`.

    Args:
        compressor: encodes them.
    """

    def __init__(self, compressor: Compressor) -> None:
        self._compressor = compressor
        self._link: Link

    @property
    def traffic(self) -> Traffic:
        """See `Carrier`."""
        return Traffic()

    def joined(self, link: Link) -> None:
        """See `Carrier`."""
        self._link = link

    def payload(self, round_id: RoundId, values: Array, weight: float) -> Payload:  # noqa: ARG002
        """See `Carrier`."""
        return self._compressor.encode(round_id.unit, values)

    def block_bytes(self, round_id: RoundId) -> int:  # noqa: ARG002
        """See `Carrier`."""
        return 0

    def send(self, push: Push, *, again: bool = False) -> None:  # noqa: ARG002
        """See `Carrier`."""
        self._link.send(push, push.priority)

    def take(self, message: Message) -> None:
        """See `Carrier`."""
        raise ProtocolError(f"{type(message).__name__} came, but nothing was sent in blocks")

    def answered(self, answer: Answer) -> Answer | None:
        """See `Carrier`."""
        return answer

    def close(self) -> None:
        """See `Carrier`."""


class InBlocks:
    """Sends pushes in blocks; see `Carrier`.

    Args:
        compressor: encodes what is not cut into blocks.
        differential: cuts the others, and keeps what was not counted.
        address: where the peer takes datagrams, where the link does not know which one has answered.
        peer: its name.
        secret: whether datagrams are encrypted, as the connection is.
    """

    def __init__(
        self, compressor: Compressor, differential: Differential, address: Address, peer: str, *, secret: bool
    ) -> None:
        self._compressor = compressor
        self._differential = differential
        self._address = address
        self._peer = peer
        self._secret = secret
        self._socket: DatagramSocket | None = None
        self._beside: DatagramLink | None = None
        self._past = Traffic()
        self._answers = AnswerInbox()
        self._link: Link

    @property
    def traffic(self) -> Traffic:
        """See `Carrier`."""
        total = Traffic(self._past.sent_bytes, self._past.received_bytes)
        if self._beside is not None:
            total.add(self._beside.traffic)
        return total

    def joined(self, link: Link) -> None:
        """See `Carrier`: opens a channel of datagrams beside the link, if they come through."""
        self._link = link
        self.close()
        name, key = secrets.token_bytes(LINK_BYTES), secrets.token_bytes(KEY_BYTES)
        try:
            self._socket = DatagramSocket(None, link.reached or self._address)
        except LinkClosedError:
            return  # the connection stands: all is sent by it
        up, down = (sealing(key, way, secret=self._secret) for way in (UP, DOWN))
        self._beside = self._socket.open(name, (up, down), self._take_datagram, self._peer)
        link.send(Beside(name, key))
        threading.Thread(target=self._beside.probe, name=f"probes {self._peer}", daemon=True).start()

    def payload(self, round_id: RoundId, values: Array, weight: float) -> Payload:
        """See `Carrier`."""
        plan = self._differential.plan(round_id, values, weight)
        return self._compressor.encode(round_id.unit, values) if plan is None else plan.marker

    def block_bytes(self, round_id: RoundId) -> int:
        """See `Carrier`."""
        plan = self._differential.again(round_id)
        return 0 if plan is None else sum(message.payload.num_bytes for message in plan.messages)

    def send(self, push: Push, *, again: bool = False) -> None:
        """See `Carrier`; what is sent again is sent reliably, as all is without datagrams."""
        plan, beside = self._differential.again(push.round), self._beside
        if plan is None:
            self._link.send(push, push.priority)
            return
        loose = beside is not None and beside.is_open and not again
        channels = [[m for m in channel if loose and fits(m)] for channel in plan.channels]
        apart = {id(message) for channel in channels for message in channel}
        for message in plan.messages:
            if id(message) not in apart:
                self._link.send(message, push.priority)
        if beside is None or not apart:
            self._link.send(push, push.priority)
        else:
            beside.send(channels, lambda: self._link.send(push, push.priority), push.priority)

    def take(self, message: Message) -> None:
        """See `Carrier`."""
        match message:
            case Received(round=round_id, numbers=counted):
                sent, arrived = self._differential.settle(round_id, counted)
                if self._beside is not None and self._beside.is_open:
                    self._beside.told(sent, arrived)
            case Blocks():
                self._answers.take(message, time.monotonic())
            case _:
                raise ProtocolError(f"{type(message).__name__} is no message of blocks")

    def answered(self, answer: Answer) -> Answer | None:
        """See `Carrier`."""
        if self._differential.again(answer.round) is not None:
            raise ProtocolError(f"{answer.round}: {self._peer} does not say which blocks it has counted")
        if self._socket is not None and is_cut(answer):
            self._socket.catch_up()
        whole, received = self._answers.whole(answer)
        if received is not None:
            self._link.send(received, answer.priority)
        return whole

    def close(self) -> None:
        """See `Carrier`."""
        self._past = self.traffic
        self._beside = None
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _take_datagram(self, message: Message) -> None:
        if isinstance(message, Blocks):
            self._answers.take(message, time.monotonic())
