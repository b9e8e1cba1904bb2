"""Frames over TCP as plain text: for loopback, and where the user asks for it by name."""

import socket
from collections.abc import Sequence

from ..wire.messages import BEFORE_JOIN
from . import sockets
from .base import Address, Connection
from .frames import FramedConnection
from .sockets import Resolve, SocketListener, resolve_name

_MAX_PIECES = 64


class PlainStream:
    """See `Stream`; over a socket that `prepare` has prepared."""

    identity = None

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock

    def recv_into(self, memory: memoryview) -> int:
        """See `Stream`."""
        return self._socket.recv_into(memory)

    def send(self, pieces: Sequence[memoryview]) -> int:
        """See `Stream`."""
        return self._socket.sendmsg(pieces[:_MAX_PIECES])

    def close(self) -> None:
        """See `Stream`."""
        sockets.close(self._socket)


class TcpTransport:
    """See `Transport`.

    Args:
        resolve: finds the addresses behind a name.
        service: type of service of what is sent; 0 for the system's.
    """

    def __init__(self, resolve: Resolve = resolve_name, service: int = 0) -> None:
        self._resolve = resolve
        self._service = service

    def connect(self, address: Address, timeout_s: float) -> Connection:
        """See `Transport`."""
        return sockets.dial(
            address, timeout_s, self._resolve, lambda sock, _: self._connection(sock, str(address))
        )

    def listen(self, address: Address) -> SocketListener:
        """See `Transport`."""
        return SocketListener(sockets.listen(address, self._resolve), self._connection)

    def _connection(self, sock: socket.socket, peer: str) -> FramedConnection:
        sockets.mark(sock, self._service)
        return FramedConnection(PlainStream(sock), peer, BEFORE_JOIN)
