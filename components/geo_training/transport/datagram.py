"""A best-effort channel over UDP beside a joined connection: the same frames, one a datagram.

The node that is dialled takes datagrams at the port of its connections; the other end sends from any. A link
is open once a probe came back; until then, and where none does, its owner uses the reliable channel. A
datagram, which `sealing` draws, has at most `MOST_BYTES`, so that it passes common links whole. What is sent
counts whether it arrives or not. DSCP: class selector C - i for channel i of C, as GeoMX has it.
"""

import contextlib
import heapq
import itertools
import select
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from ..._launch import progress
from ..errors import FrameError, LinkClosedError
from ..wire.block_messages import Probe
from ..wire.messages import Bytes, Limits, Message, encode, read_message
from .base import Address, Traffic
from .pace import Pace
from .sealing import HEADER, SEAL_BYTES, Sealing
from .sockets import Resolve, Resolved, resolve_name

MOST_BYTES = 1400
"""Bytes of a datagram, without those of UDP and IP."""
FRAME_BYTES = MOST_BYTES - HEADER.size - SEAL_BYTES
"""Bytes of a frame that fits."""
PROBE_S = 1.0
"""Seconds in which a probe must come back."""
_PROBES = 10
_LIMITS = Limits(head_bytes=1024, body_bytes=MOST_BYTES)
_QUEUE_BYTES, _INBOX_BYTES = 1 << 16, 1 << 22
"""Of the socket: what waits to be sent is held here, where it is not lost; what came waits for its reader."""
_MOST_AT_ONCE = 4096
"""Datagrams that `catch_up` reads at most: more than a full socket holds."""
_POLL_S = 0.5
_WAIT_TO_SEND = struct.pack("@ll", 0, int(_POLL_S * 1e6))
"""How long the sender waits where the queue is full, a `timeval`; the reader never waits."""
SERVICE_STEP = 32
"""Between the types of service of two channels: a class selector of DSCP."""


@dataclass(slots=True)
class _Turn:
    """What one call has left to send; messages are made as they are sent."""

    first: tuple[Message, int] | None
    others: Iterator[tuple[Message, int]]
    then: Callable[[], None]


class DatagramLink:
    """One end of a channel; made by a `DatagramSocket`. Any thread may send.

    Args:
        link: what its datagrams begin with.
        seals: of what is sent, and of what is received.
        post: sends bytes with a type of service; gives up quietly where the network does not take them.
        take: called with each message, in the socket's thread.
        peer: who is at the other end, for what is said.
        dials: whether this end asks whether datagrams come through; the other one answers.
    """

    def __init__(
        self,
        link: bytes,
        seals: tuple[Sealing, Sealing],
        post: Callable[[bytes, int], None],
        take: Callable[[Message], None],
        peer: str,
        *,
        dials: bool,
    ) -> None:
        self.traffic = Traffic()
        self.is_open = False
        self._link = link
        self._outgoing, self._incoming = seals
        self._post = post
        self._take = take
        self._peer = peer
        self._dials = dials
        self._pace = Pace()
        self._sequences = itertools.count()
        self._waiting: list[tuple[int, int, _Turn]] = []
        self._order = itertools.count()
        self._changed = threading.Condition()
        self._closed = False
        self._echoed = threading.Event()
        self._given_up = False
        self._thread = threading.Thread(target=self._send_all, name=f"datagrams to {peer}", daemon=True)
        self._thread.start()

    def send(
        self, channels: Sequence[Iterable[Message]], then: Callable[[], None], priority: int = 0
    ) -> None:
        """Sends messages, those of the first channel first, in their turn behind those of earlier calls.

        Args:
            channels: frames that fit, by channel; read in the link's thread, as they leave.
            then: called in the link's thread when all have left, or at once where the link is closed.
            priority: smaller ones leave before those of earlier calls.
        """
        count = len(channels)
        messages = (
            (message, (count - 1 - number) * SERVICE_STEP)
            for number, channel in enumerate(channels)
            for message in channel
        )
        with self._changed:
            if not self._closed:
                turn = _Turn(next(messages, None), messages, then)
                heapq.heappush(self._waiting, (priority, next(self._order), turn))
                self._changed.notify()
                return
        then()

    def told(self, sent: int, arrived: int) -> None:
        """Takes how many of some datagrams arrived, for the pace; closes a link on which none do any more."""
        with self._changed:
            self._pace.told(sent, arrived)
        if sent >= _PROBES and not arrived and self.is_open:
            self.is_open = False
            progress(f"datagrams to {self._peer} do not come through any more: all is sent reliably")

    def probe(self) -> None:
        """Opens the link, or says once that datagrams do not come through; called in a thread of its own."""
        for _ in range(_PROBES):
            self._transmit(Probe(), 0)
            if self._echoed.wait(PROBE_S / _PROBES) or self._closed:
                break
        self._given_up = not self._echoed.is_set()
        if self._given_up and not self._closed:
            progress(f"datagrams to {self._peer} do not come back within {PROBE_S:g} s: all is sent reliably")

    def unseal(self, header: bytes, body: bytes) -> bytes | None:
        """Returns the frame of a datagram; None where it is not the peer's."""
        return self._incoming.unseal(header, body)

    def received(self, frame: bytes, num_bytes: int) -> None:
        """Takes the frame of a datagram of so many bytes."""
        self.traffic.received_bytes += num_bytes
        try:
            message, _ = read_message(_reader(frame), _LIMITS)
        except (FrameError, LinkClosedError):
            return  # as good as lost
        if not isinstance(message, Probe):
            self._take(message)
            return
        self.is_open = not self._given_up
        self._echoed.set()
        if not self._dials:
            self._transmit(Probe(), 0)

    def close(self) -> None:
        """Ends the link; may be called twice."""
        with self._changed:
            self._closed, self.is_open = True, False
            self._changed.notify()
        if self._thread is not threading.current_thread():
            self._thread.join(_POLL_S)

    def _send_all(self) -> None:
        while (turn := self._next()) is not None:
            message = turn.first
            if message is not None:
                turn.first = next(turn.others, None)
                self._paced(*message)
            if turn.first is None:
                self._done(turn)

    def _next(self) -> _Turn | None:
        """Waits for what is most urgent; it stays in the queue until all of it has left."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._closed)
            left = [] if not self._closed else self._waiting
            if not self._closed:
                return self._waiting[0][2]
            self._waiting = []
        for *_, turn in left:
            turn.then()
        return None

    def _done(self, turn: _Turn) -> None:
        with self._changed:
            self._waiting = [entry for entry in self._waiting if entry[2] is not turn]
            heapq.heapify(self._waiting)
        turn.then()

    def _paced(self, message: Message, tos: int) -> None:
        while True:
            with self._changed:
                wait_s = self._pace.delay(MOST_BYTES, time.monotonic())
                if not wait_s or self._closed:
                    break
                self._changed.wait(wait_s)
        self._transmit(message, tos)

    def _transmit(self, message: Message, tos: int) -> None:
        frame = b"".join(encode(message))
        header = HEADER.pack(self._link, next(self._sequences))
        datagram = header + self._outgoing.seal(header, frame)
        with self._changed:
            self.traffic.sent_bytes += len(datagram)
        self._post(datagram, tos)


class DatagramSocket:
    """A UDP socket and its links; one thread reads, and who must not be ahead of it.

    Args:
        address: where it listens; None for any free port, of the family of `peer`.
        peer: where datagrams go; None where they come in first.
        resolve: finds the addresses behind a name.

    Raises:
        LinkClosedError: the address cannot be had.
    """

    def __init__(
        self, address: Address | None, peer: Address | None = None, resolve: Resolve = resolve_name
    ) -> None:
        self._links: dict[bytes, DatagramLink] = {}
        self._places: dict[bytes, tuple[object, ...]] = {}
        self._lock = threading.Lock()
        where = peer or address
        assert where is not None  # one of the two is given
        try:
            self._socket, place = _bound(resolve(where), ("", 0) if address is None else None)
        except OSError as error:
            raise LinkClosedError(f"no datagrams at {where}: {error.strerror or error}") from error
        self._family, self._place = self._socket.family, place if peer is not None else None
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _QUEUE_BYTES)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _INBOX_BYTES)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, _WAIT_TO_SEND)
        self._reading = threading.Lock()
        self._closed = False
        self._thread = threading.Thread(target=self._read, name="reads datagrams", daemon=True)
        self._thread.start()

    @property
    def port(self) -> int:
        """The port that it got."""
        return int(self._socket.getsockname()[1])

    def open(
        self, link: bytes, seals: tuple[Sealing, Sealing], take: Callable[[Message], None], peer: str
    ) -> DatagramLink:
        """Returns a new link; see `DatagramLink`. It is not open before a probe has come."""

        def post(datagram: bytes, tos: int) -> None:
            self._send(link, datagram, tos)

        made = DatagramLink(link, seals, post, take, peer, dials=self._place is not None)
        with self._lock:
            self._links[link] = made
        return made

    def catch_up(self) -> None:
        """Takes what has come: what is read of the connection beside it was sent after that, as a rule."""
        with self._reading:
            for _ in range(_MOST_AT_ONCE):
                if not self._read_one():
                    return

    def forget(self, link: bytes) -> None:
        """Closes a link."""
        with self._lock:
            made = self._links.pop(link, None)
            self._places.pop(link, None)
        if made is not None:
            made.close()

    def close(self) -> None:
        """Closes all links and the socket; may be called twice."""
        self._closed = True
        for link in list(self._links):
            self.forget(link)
        with contextlib.suppress(OSError):  # it is not connected, but its reader wakes
            self._socket.shutdown(socket.SHUT_RDWR)
        self._thread.join(2 * _POLL_S)
        self._socket.close()

    def _send(self, link: bytes, datagram: bytes, tos: int) -> None:
        place = self._places.get(link, self._place)
        if place is None:
            return
        if self._family == socket.AF_INET6:
            mark = (socket.IPPROTO_IPV6, socket.IPV6_TCLASS, struct.pack("@i", tos))
        else:
            mark = (socket.IPPROTO_IP, socket.IP_TOS, struct.pack("@i", tos))
        with contextlib.suppress(OSError):  # as good as lost
            self._socket.sendmsg([datagram], [mark], 0, place)

    def _read(self) -> None:
        readable = select.poll()
        readable.register(self._socket, select.POLLIN)
        while not self._closed:
            if readable.poll(_POLL_S * 1000):
                with self._reading:
                    self._read_one()

    def _read_one(self) -> bool:
        """Takes the next datagram, with the lock; returns whether there was one, or an error of one."""
        try:
            datagram, place = self._socket.recvfrom(1 << 16, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return False
        except OSError:  # closed, or of an earlier datagram that did not arrive
            return not self._closed
        header, body = datagram[: HEADER.size], datagram[HEADER.size :]
        if len(header) < HEADER.size:
            return True
        link = HEADER.unpack(header)[0]
        found = self._links.get(link)
        frame = None if found is None else found.unseal(header, body)
        if found is not None and frame is not None:
            if self._place is None:
                self._places[link] = place
            found.received(frame, len(datagram))
        return True


def _bound(found: Sequence[Resolved], at: tuple[str, int] | None) -> tuple[socket.socket, tuple[str, int]]:
    """Returns a socket for the first of some addresses where it can be bound, and that address.

    Args:
        found: the addresses.
        at: where it is bound; None for the address itself.

    Raises:
        OSError: for none.
    """
    failure = OSError("the name has no address")
    for family, host, port in found:
        try:
            made = socket.socket(family, socket.SOCK_DGRAM)
        except OSError as error:
            failure = error
            continue
        try:
            made.bind(at or (host, port))
        except OSError as error:
            made.close()
            failure = error
            continue
        return made, (host, port)
    raise failure


def fits(message: Message) -> bool:
    """Tells whether a message is small enough for a datagram."""
    return sum(memoryview(piece).nbytes for piece in encode(message)) <= FRAME_BYTES


def _reader(frame: Bytes) -> Callable[[memoryview], None]:
    left = memoryview(frame)

    def read_into(memory: memoryview) -> None:
        nonlocal left
        if memory.nbytes > left.nbytes:
            raise LinkClosedError("a datagram that ends within a frame")
        memory[:] = left[: memory.nbytes]
        left = left[memory.nbytes :]

    return read_into
