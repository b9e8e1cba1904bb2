"""Sockets: names resolved anew for every connection, all their addresses tried, ends that are noticed.

Knows nothing of frames.
"""

import contextlib
import errno
import socket
import struct
import time
from collections.abc import Callable
from typing import TypeAlias

from ..errors import DeadlineError, LinkClosedError, LinkError
from .base import Address, Connection

POLL_S = 0.5
"""How long the kernel waits before a reader or sender looks at the time."""

_UNSENT_BYTES = 1 << 15
"""Bytes that wait in the system for the link: what is there already, nothing more urgent passes."""
_SILENT_S = 60
"""A path that carries nothing for so long, such as one whose NAT forgot it, is lost and made anew."""
_PROBES = 4
_PASSING = frozenset(
    (errno.ECONNABORTED, errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM, errno.EPROTO, errno.EPERM)
)
"""Why a connection may not be had that says nothing of the listener."""
_PASSING_PAUSE_S = 0.05

Resolved: TypeAlias = tuple[socket.AddressFamily, str, int]
"""Family, numeric host and port."""

Resolve: TypeAlias = Callable[[Address], list[Resolved]]
"""Finds the addresses behind a name, in the order in which they are tried. Raises `OSError` without any."""


def resolve_name(address: Address) -> list[Resolved]:
    """See `Resolve`: asks the system."""
    found = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
    unlike = {(family, str(target[0]), int(target[1])): None for family, _, _, _, target in found}
    return list(unlike)


def dial(
    address: Address, timeout_s: float, resolve: Resolve, greet: Callable[[socket.socket, float], Connection]
) -> Connection:
    """Connects to the first of a name's addresses that answers as it should.

    Args:
        address: whom to dial.
        timeout_s: for all addresses together; each is given its share of what is left.
        resolve: finds the addresses.
        greet: makes the connection of a connected socket, before a moment on the monotonic clock.

    Raises:
        LinkError: the last address's, when none answers as it should.
    """
    end = time.monotonic() + timeout_s
    try:
        found = resolve(address)
    except OSError as error:
        raise LinkClosedError(f"cannot connect to {address}: {error.strerror or error}") from error
    failure: LinkError = LinkClosedError(f"cannot connect to {address}: the name has no address")
    for number, target in enumerate(found):
        now = time.monotonic()
        share_s = max(POLL_S, (end - now) / (len(found) - number))
        try:
            connection = greet(_connect(address, target, share_s), now + share_s)
            connection.reached = Address(*target[1:])
            return connection
        except LinkError as error:
            failure = error
    raise failure


def listen(address: Address, resolve: Resolve) -> socket.socket:
    """Returns a socket that listens at the first of a name's addresses that this machine has.

    Raises:
        LinkClosedError: it has none of them, or the port is taken.
    """
    try:
        failure: OSError | None = None
        for family, host, port in resolve(address):
            try:
                return socket.create_server((host, port), family=family, backlog=128)
            except OSError as error:
                failure = error
        raise failure or OSError("the name has no address")
    except OSError as error:
        raise LinkClosedError(f"cannot listen at {address}: {error.strerror or error}") from error


class SocketListener:
    """See `Listener`.

    Args:
        sock: listens.
        connection: makes the connection of an accepted socket and its peer's name, without waiting for it.
    """

    def __init__(self, sock: socket.socket, connection: Callable[[socket.socket, str], Connection]) -> None:
        host, port = sock.getsockname()[:2]
        self.address = Address(host, port)
        self._socket = sock
        self._connection = connection

    def accept(self, timeout_s: float) -> Connection | None:
        """See `Listener`."""
        try:
            self._socket.settimeout(timeout_s)
            sock, peer = self._socket.accept()
        except TimeoutError:
            return None
        except OSError as error:
            if error.errno in _PASSING:
                time.sleep(min(timeout_s, _PASSING_PAUSE_S))
                return None
            raise LinkClosedError(f"listening at {self.address}: {error.strerror or error}") from error
        try:
            prepare(sock)
            return self._connection(sock, str(Address(*peer[:2])))
        except OSError:
            sock.close()
            return None

    def close(self) -> None:
        """See `Listener`."""
        close(self._socket)


def prepare(sock: socket.socket) -> None:
    """Sets what every connection needs: blocking with a look at the time, and a lost path is noticed."""
    sock.settimeout(None)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, _UNSENT_BYTES)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, _SILENT_S // 2)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, _SILENT_S // 2 // _PROBES)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, _PROBES)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _SILENT_S * 1000)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, _timeval(POLL_S))
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, _timeval(POLL_S))


def mark(sock: socket.socket, service: int) -> None:
    """Gives what a connection sends a type of service, where the system lets it have one; 0 leaves it."""
    if not service:
        return
    with contextlib.suppress(OSError):  # no more than a wish, and some containers refuse it
        if sock.family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_TCLASS, service)
        else:
            sock.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, service)


def close(sock: socket.socket) -> None:
    """Ends a socket and wakes who waits in it; may be called twice."""
    with contextlib.suppress(OSError):  # the peer was first, or the system has nothing to wake
        sock.shutdown(socket.SHUT_RDWR)
    sock.close()


def _connect(address: Address, target: Resolved, timeout_s: float) -> socket.socket:
    family, host, port = target
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.settimeout(timeout_s)
        sock.connect((host, port))
        prepare(sock)
    except TimeoutError as error:
        sock.close()
        raise DeadlineError(f"no answer from {address} within {timeout_s:.0f} s") from error
    except OSError as error:
        sock.close()
        raise LinkClosedError(f"cannot connect to {address}: {error.strerror or error}") from error
    return sock


def _timeval(seconds: float) -> bytes:
    return struct.pack("@ll", int(seconds), int(seconds % 1 * 1e6))
