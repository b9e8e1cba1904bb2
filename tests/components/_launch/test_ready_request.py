"""A request that was made ready: over a connection that lives, that has died, that says nothing; and TLS."""

import contextlib
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from geokfp.components._launch.ready_request import Endpoint, ReadyRequest
from support.cluster_script import DEADLINE_S
from support.real_cluster import write_certificates

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
Serve = Callable[[socket.socket], None]


def answer(connection: socket.socket) -> None:
    """Reads one whole request, and answers it."""
    data = b""
    while not data.endswith(b'{"a": 1}'):
        data += connection.recv(1000)
    assert data.startswith(b"DELETE /api/v1/x HTTP/1.1\r\n")
    assert b"Content-Length: 8\r\n" in data
    connection.sendall(ANSWER)


def close(connection: socket.socket) -> None:
    """Closes it at once, as a server does that has waited for long enough."""


@contextlib.contextmanager
def serving(
    *connections: Serve, tls: ssl.SSLContext | None = None
) -> Iterator[tuple[int, list[threading.Event]]]:
    """Serves connections in turn, each in its own way; yields the port, and what is set when each is over."""
    over = [threading.Event() for _ in connections]
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            for served, done in zip(connections, over, strict=True):
                raw, _ = listener.accept()
                with (
                    contextlib.suppress(OSError),
                    raw,
                    tls.wrap_socket(raw, server_side=True) if tls else raw as connection,
                ):
                    served(connection)
                done.set()

        thread = threading.Thread(target=serve)
        thread.start()
        yield listener.getsockname()[1], over
        thread.join(DEADLINE_S)


def request(port: int, scheme: str = "http", **fields: str) -> ReadyRequest:
    endpoint = Endpoint(url=f"{scheme}://127.0.0.1:{port}", **fields)  # type: ignore[arg-type]
    return ReadyRequest(endpoint, "DELETE", "/api/v1/x", {"Accept": "application/json"}, b'{"a": 1}')


def test_it_goes_over_the_connection_that_was_made() -> None:
    with serving(answer) as (port, _):
        one = request(port)
        one.connect(DEADLINE_S)
        assert one.send(DEADLINE_S) == 200
        one.close()


def test_without_a_connection_it_makes_one() -> None:
    with serving(answer) as (port, _):
        one = request(port)
        assert one.send(DEADLINE_S) == 200
        one.close()


def test_a_connection_that_the_server_has_closed_is_made_anew() -> None:
    with serving(close, answer) as (port, over):
        one = request(port)
        one.connect(DEADLINE_S)
        assert over[0].wait(DEADLINE_S)
        assert one.send(DEADLINE_S) == 200
        one.close()


def test_a_connection_that_is_closed_instead_of_an_answer_is_made_anew() -> None:
    with serving(lambda connection: connection.recv(1) and None, answer) as (port, _):  # type: ignore[func-returns-value]
        one = request(port)
        one.connect(DEADLINE_S)
        assert one.send(DEADLINE_S) == 200
        one.close()


def test_a_server_that_says_nothing_is_not_waited_for() -> None:
    ended = threading.Event()
    with serving(lambda connection: ended.wait(DEADLINE_S) and None) as (port, _):  # type: ignore[func-returns-value]
        one = request(port)
        with pytest.raises(TimeoutError):
            one.send(0.1)
        one.close()
        ended.set()


def test_what_is_no_answer_is_an_error() -> None:
    with serving(lambda connection: connection.sendall(b"words\r\n\r\n")) as (port, _):
        one = request(port)
        with pytest.raises(ConnectionError):
            one.send(DEADLINE_S)
        one.close()


def server_context(folder: Path) -> ssl.SSLContext:
    write_certificates(folder)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "server.crt", folder / "server.key")
    return context


def test_the_servers_certificate_is_checked(tmp_path: Path) -> None:
    with serving(answer, close, tls=server_context(tmp_path)) as (port, _):
        one = request(port, "https", authority=str(tmp_path / "authority.crt"))
        one.connect(DEADLINE_S)
        assert one.send(DEADLINE_S) == 200
        one.close()
        other = request(port, "https")
        with pytest.raises(ssl.SSLCertVerificationError):
            other.connect(DEADLINE_S)


def test_a_tls_connection_that_the_server_has_closed_is_made_anew(tmp_path: Path) -> None:
    with serving(close, answer, tls=server_context(tmp_path)) as (port, over):
        one = request(port, "https", authority=str(tmp_path / "authority.crt"))
        one.connect(DEADLINE_S)
        assert over[0].wait(DEADLINE_S)
        assert one.send(DEADLINE_S) == 200
        one.close()
