"""Frames over TLS 1.3 in which both ends show certificates (RFC 8446), and are known by their nodes' names.

The bytes go through memory, as OpenSSL's connections must not be used by two threads at once: a lock is held
while bytes become others, never while a socket waits. Counts of bytes are those of frames; TLS adds 22 to
each 16384 and some 2600 to a connection.
"""

import contextlib
import socket
import ssl
import threading
import time
from collections.abc import Sequence
from typing import cast

from ..errors import LinkClosedError
from ..wire.messages import BEFORE_JOIN
from . import sockets
from .base import Address, Connection
from .certificates import Certificates
from .frames import FramedConnection, UnknownPeer
from .node_names import named_nodes
from .sockets import Resolve, SocketListener, resolve_name
from .tls_reasons import handshake_reason

HANDSHAKE_S = 10.0
"""A peer that has not shown who it is by then is left."""

_PIECE_BYTES = 1 << 16
"""Bytes that are turned at once: what a connection holds beside its frame."""


class TlsStream:
    """See `Stream`; over a socket that `prepare` has prepared.

    The end that accepts shakes hands when it first reads, in the thread that reads.

    Args:
        sock: connected.
        context: see `Certificates`.
        server_side: whether the peer has dialled.
    """

    def __init__(self, sock: socket.socket, context: ssl.SSLContext, *, server_side: bool) -> None:
        self._socket = sock
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=server_side)
        self._turning, self._sending = threading.Lock(), threading.Lock()
        self._unsent = memoryview(b"")
        self._taken: int | None = None
        self._deadline = time.monotonic() + HANDSHAKE_S
        self._established = False
        self._identity: frozenset[str] = frozenset()

    @property
    def identity(self) -> frozenset[str]:
        """See `Connection`."""
        return self._identity

    def shake_hands(self, deadline: float) -> None:
        """Shakes hands, once.

        Args:
            deadline: moment on the monotonic clock.

        Raises:
            OSError: the peer shows no certificate of our authority, is none that speaks TLS, or is too slow.
        """
        while not self._established:
            self._shake(deadline)

    def recv_into(self, memory: memoryview) -> int:
        """See `Stream`."""
        if not self._established:
            self._shake(self._deadline)
            if not self._established:
                raise BlockingIOError
        count = self._read(memory)
        if count is None:
            if not self._feed():
                return 0
            count = self._read(memory)
        if self._outgoing.pending and self._sending.acquire(blocking=False):
            # Answers of TLS itself; else whoever sends takes them along.
            try:
                self._drain()
            finally:
                self._sending.release()
        if count is None:
            raise BlockingIOError
        return count

    def send(self, pieces: Sequence[memoryview]) -> int:
        """See `Stream`."""
        if not self._established:
            raise OSError("the peer has not shown who it is")
        with self._sending:
            if self._taken is None:
                self._taken = self._write(pieces)
            self._drain()
            taken, self._taken = self._taken, None
        return taken

    def close(self) -> None:
        """See `Stream`."""
        sockets.close(self._socket)

    def _shake(self, deadline: float) -> None:
        """Goes on as far as what has come allows, then waits a moment for more."""
        try:
            is_done = self._steps_on()
        except ssl.SSLError as error:
            with contextlib.suppress(OSError):  # the peer is told why, if it listens
                self._flush(deadline)
            raise UnknownPeer(handshake_reason(error)) from error
        self._flush(deadline)
        if is_done:
            self._identity = named_nodes(self._tls.getpeercert() or {})
            self._established = True
            return
        with contextlib.suppress(BlockingIOError):
            if not self._feed():
                raise OSError("closed before it showed who it is")
        _check_time(deadline)

    def _steps_on(self) -> bool:
        with self._turning:
            try:
                self._tls.do_handshake()
            except ssl.SSLWantReadError:
                return False
        return True

    def _flush(self, deadline: float) -> None:
        while True:
            try:
                with self._sending:
                    self._drain()
                return
            except BlockingIOError:
                _check_time(deadline)

    def _feed(self) -> bool:
        """Takes what the socket has; false at its end."""
        received = self._socket.recv(_PIECE_BYTES)
        with self._turning:
            self._incoming.write(received)
        return bool(received)

    def _read(self, memory: memoryview) -> int | None:
        with self._turning:
            try:
                return cast(int, self._tls.read(memory.nbytes, memory))
            except ssl.SSLWantReadError:
                return None
            except ssl.SSLZeroReturnError:
                return 0
            except ssl.SSLError as error:  # also how a client hears that its certificate is refused
                raise OSError(handshake_reason(error)) from error

    def _write(self, pieces: Sequence[memoryview]) -> int:
        """Turns the beginning of some pieces; returns how many bytes."""
        taken: list[memoryview] = []
        left = _PIECE_BYTES
        for piece in pieces:
            taken.append(piece[:left])
            left -= taken[-1].nbytes
            if not left:
                break
        with self._turning:
            return self._tls.write(b"".join(taken))

    def _drain(self) -> None:
        """Sends all that was turned, in its order; called with `_sending` held."""
        while True:
            while self._unsent.nbytes:
                self._unsent = self._unsent[self._socket.send(self._unsent) :]
            with self._turning:
                turned = self._outgoing.read()
            if not turned:
                return
            self._unsent = memoryview(turned)


class TlsTransport:
    """See `Transport`; of one node.

    Args:
        certificates: of the node.
        peer: the node that is dialled; not needed to listen.
        resolve: finds the addresses behind a name.
        service: type of service of what is sent; 0 for the system's.
    """

    def __init__(
        self,
        certificates: Certificates,
        peer: str = "",
        resolve: Resolve = resolve_name,
        service: int = 0,
    ) -> None:
        self._service = service
        self._certificates = certificates
        self._peer = peer
        self._resolve = resolve

    def connect(self, address: Address, timeout_s: float) -> Connection:
        """See `Transport`; who answers must show that it is the peer."""

        def greet(sock: socket.socket, deadline: float) -> FramedConnection:
            sockets.mark(sock, self._service)
            try:
                stream = TlsStream(sock, self._certificates.context(server_side=False), server_side=False)
                stream.shake_hands(deadline)
            except OSError as error:
                sockets.close(sock)
                reason = error.strerror or str(error)
                raise LinkClosedError(f"{self._peer} at {address}: {reason}") from error
            if self._peer not in stream.identity:
                stream.close()
                shown = sorted(stream.identity) or "no node"
                raise LinkClosedError(
                    f"{self._peer} at {address}: who answers has the certificate of {shown}"
                )
            return FramedConnection(stream, str(address), BEFORE_JOIN)

        return sockets.dial(address, timeout_s, self._resolve, greet)

    def listen(self, address: Address) -> SocketListener:
        """See `Transport`."""

        def accepted(sock: socket.socket, peer: str) -> FramedConnection:
            sockets.mark(sock, self._service)
            context = self._certificates.context(server_side=True)
            return FramedConnection(TlsStream(sock, context, server_side=True), peer, BEFORE_JOIN)

        return SocketListener(sockets.listen(address, self._resolve), accepted)


def _check_time(deadline: float) -> None:
    if time.monotonic() > deadline:
        raise TimeoutError("has not shown who it is in time")
