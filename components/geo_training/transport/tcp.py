"""Frames over TCP: blocking sockets, the kernel's time limits. Plain text: for loopback, trusted networks."""

import contextlib
import socket
import struct
import threading
import time

from ..errors import DeadlineError, LinkClosedError
from ..messages import BEFORE_JOIN, JOINED, Limits, Message, encode, read_message
from .base import Address, Traffic

_POLL_S = 0.5
_FRAME_TIMEOUT_S = 60.0
_MAX_PIECES = 64
_UNSENT_BYTES = 1 << 15
"""Bytes that wait in the system for the link: what is there already, nothing more urgent passes."""


class TcpConnection:
    """See `Connection`."""

    def __init__(self, sock: socket.socket, peer: str, limits: Limits) -> None:
        self.limits = limits
        self.traffic = Traffic()
        self._socket = sock
        self._peer = peer
        self._send_lock = threading.Lock()
        sock.settimeout(None)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, _UNSENT_BYTES)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, _timeval(_POLL_S))
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, _timeval(_POLL_S))

    def send(self, message: Message) -> None:
        """See `Connection`."""
        pieces = [memoryview(piece) for piece in encode(message)]
        num_bytes = sum(piece.nbytes for piece in pieces)
        deadline = time.monotonic() + _FRAME_TIMEOUT_S
        with self._send_lock:
            # Counted first: the peer may have the message, and ask for the count, before this thread goes on.
            self.traffic.sent_bytes += num_bytes
            self._send_all(pieces, deadline)

    def receive(self, timeout_s: float | None = None) -> Message:
        """See `Connection`."""
        deadline = None if timeout_s is None else time.monotonic() + timeout_s

        def read_into(memory: memoryview) -> None:
            nonlocal deadline
            while memory.nbytes:
                try:
                    count = self._socket.recv_into(memory)
                except BlockingIOError:
                    if deadline is not None and time.monotonic() > deadline:
                        raise DeadlineError(f"no whole message from {self._peer} in time") from None
                    continue
                except OSError as error:
                    raise LinkClosedError(f"connection to {self._peer}: {error.strerror or error}") from error
                if count == 0:
                    raise LinkClosedError(f"{self._peer} closed the connection")
                if not begun:
                    begun.append(time.monotonic())
                    whole = begun[0] + _FRAME_TIMEOUT_S
                    deadline = whole if deadline is None else min(deadline, whole)
                memory = memory[count:]

        begun: list[float] = []
        message, num_bytes = read_message(read_into, self.limits)
        self.traffic.came(num_bytes, begun[0], time.monotonic())
        return message

    def close(self) -> None:
        """See `Connection`."""
        with contextlib.suppress(OSError):  # the peer was first
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def _send_all(self, pieces: list[memoryview], deadline: float) -> None:
        while pieces:
            try:
                count = self._socket.sendmsg(pieces[:_MAX_PIECES])
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise DeadlineError(f"{self._peer} took no bytes for {_FRAME_TIMEOUT_S:.0f} s") from None
                continue
            except OSError as error:
                raise LinkClosedError(f"connection to {self._peer}: {error.strerror or error}") from error
            while pieces and count >= pieces[0].nbytes:
                count -= pieces.pop(0).nbytes
            if count:
                pieces[0] = pieces[0][count:]


class TcpListener:
    """See `Listener`."""

    def __init__(self, sock: socket.socket) -> None:
        host, port = sock.getsockname()[:2]
        self.address = Address(host, port)
        self._socket = sock

    def accept(self, timeout_s: float) -> TcpConnection | None:
        """See `Listener`."""
        try:
            self._socket.settimeout(timeout_s)
            sock, peer = self._socket.accept()
        except TimeoutError:
            return None
        except OSError as error:
            raise LinkClosedError(f"listening at {self.address}: {error.strerror or error}") from error
        return TcpConnection(sock, f"{peer[0]}:{peer[1]}", BEFORE_JOIN)

    def close(self) -> None:
        """See `Listener`."""
        with contextlib.suppress(OSError):  # nothing is to be woken where the system refuses
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()


class TcpTransport:
    """See `Transport`."""

    def connect(self, address: Address, timeout_s: float) -> TcpConnection:
        """See `Transport`."""
        try:
            sock = socket.create_connection((address.host, address.port), timeout_s)
        except TimeoutError as error:
            raise DeadlineError(f"no answer from {address} within {timeout_s:.0f} s") from error
        except OSError as error:
            raise LinkClosedError(f"cannot connect to {address}: {error.strerror or error}") from error
        return TcpConnection(sock, str(address), JOINED)

    def listen(self, address: Address) -> TcpListener:
        """See `Transport`."""
        try:
            family = socket.getaddrinfo(address.host, None, type=socket.SOCK_STREAM)[0][0]
            sock = socket.create_server((address.host, address.port), family=family, backlog=128)
        except OSError as error:
            raise LinkClosedError(f"cannot listen at {address}: {error.strerror or error}") from error
        return TcpListener(sock)


def _timeval(seconds: float) -> bytes:
    return struct.pack("@ll", int(seconds), int(seconds % 1 * 1e6))
