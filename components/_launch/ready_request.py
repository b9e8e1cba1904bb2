"""A request that is ready before it is needed: bytes and a connection, sent within a few tenths of a second.

Uses no pool, no lock and no client, as the process that sends it has been told to end.
"""

import contextlib
import http.client
import socket
import ssl
import time
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit


@dataclass(frozen=True, kw_only=True, slots=True)
class Endpoint:
    """A server and how it is known."""

    url: str
    """`https://host:port`, or without TLS `http://host:port`."""
    authority: str = ""
    """File with the certificates that are trusted; empty is the system's."""
    certificate: str = ""
    """File with the client's own certificate."""
    key: str = ""
    """File with its key."""
    verified: bool = True
    """Whether the server's certificate is checked."""
    server_name: str = ""
    """Name that the server's certificate must have, unless the host's."""


class ReadyRequest:
    """One request over one connection, which may be made beforehand."""

    def __init__(
        self, endpoint: Endpoint, method: str, path: str, headers: Mapping[str, str], body: bytes
    ) -> None:
        parts = urlsplit(endpoint.url)
        self._host = parts.hostname or ""
        self._port = parts.port or (443 if parts.scheme == "https" else 80)
        self._server_name = endpoint.server_name or self._host
        self._tls = _tls(endpoint) if parts.scheme == "https" else None
        lines = [f"{method} {parts.path.rstrip('/')}{path} HTTP/1.1", f"Host: {parts.netloc}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        lines += [f"Content-Length: {len(body)}", "", ""]
        self._bytes = "\r\n".join(lines).encode() + body
        self._socket: socket.socket | None = None

    def connect(self, timeout_s: float) -> None:
        """Makes the connection.

        Raises:
            OSError: it cannot be made within `timeout_s` seconds.
        """
        raw = socket.create_connection((self._host, self._port), timeout_s)
        try:
            raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._socket = self._tls.wrap_socket(raw, server_hostname=self._server_name) if self._tls else raw
        except OSError:
            raw.close()
            raise

    def send(self, timeout_s: float) -> int:
        """Sends it over the connection that was made, or over a new one where that is dead.

        Returns:
            The HTTP status of the answer.

        Raises:
            OSError: there was no answer within `timeout_s` seconds.
        """
        until = time.monotonic() + timeout_s
        if self._socket is not None and not _has_ended(self._socket):
            with contextlib.suppress(ConnectionError, ssl.SSLError, http.client.HTTPException):
                return self._exchange(self._socket, until)
        self.close()
        self.connect(_left_s(until))
        assert self._socket is not None
        try:
            return self._exchange(self._socket, until)
        except http.client.HTTPException as error:
            raise ConnectionError(f"the answer is no HTTP ({error})") from error

    def close(self) -> None:
        """Closes the connection."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _exchange(self, connection: socket.socket, until: float) -> int:
        connection.settimeout(_left_s(until))
        connection.sendall(self._bytes)
        connection.settimeout(_left_s(until))
        answer = http.client.HTTPResponse(connection)
        try:
            answer.begin()
            return answer.status
        finally:
            answer.close()


def _tls(endpoint: Endpoint) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=endpoint.authority or None)
    if not endpoint.verified:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if endpoint.certificate:
        context.load_cert_chain(endpoint.certificate, endpoint.key or None)
    return context


def _has_ended(connection: socket.socket) -> bool:
    """A server says nothing before it is asked: what can be read is the end."""
    connection.settimeout(0)
    try:
        return not connection.recv(1)
    except (BlockingIOError, ssl.SSLWantReadError):
        return False
    except OSError:
        return True


def _left_s(until: float) -> float:
    left_s = until - time.monotonic()
    if left_s <= 0:
        raise TimeoutError("no answer in time")
    return left_s
