"""One suite over plain text and TLS: messages, counts, deadlines and ends; then what TLS alone must hold."""

import contextlib
import socket
import ssl
import struct
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from geokfp.components.geo_training.errors import DeadlineError, FrameError, LinkClosedError, LinkError
from geokfp.components.geo_training.transport.base import Address, Connection
from geokfp.components.geo_training.transport.certificates import Certificates
from geokfp.components.geo_training.transport.tcp import TcpTransport
from geokfp.components.geo_training.transport.tls import TlsTransport
from geokfp.components.geo_training.wire.messages import (
    BEFORE_JOIN,
    JOINED,
    VERSION,
    Answer,
    Join,
    Payload,
    Welcome,
    encode,
)
from geokfp.components.geo_training.wire.units import RoundId, Unit
from geokfp.pipelines._command_line.authority import Authority
from support.certificates import issue, issue_each

LOCAL = Address("127.0.0.1", 0)
AUTHORITY = Authority(days=2)
HEADER = struct.Struct("<4sBBHIQ")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return issue_each(tmp_path_factory.mktemp("certificates"), ["root", "oslo", "paris"], AUTHORITY)


def ends(kind: str, folder):
    if kind == "tcp":
        return TcpTransport(), TcpTransport()
    return TlsTransport(Certificates(folder, "root")), TlsTransport(Certificates(folder, "oslo"), "root")


@pytest.fixture(params=["tcp", "tls"])
def transports(request, folder):
    return ends(request.param, folder)


@contextlib.contextmanager
def connected(transports) -> Iterator[tuple[Connection, Connection]]:
    """Yields the dialling and the accepted end, after the first message, which shakes hands."""
    server, client = transports
    listener = server.listen(LOCAL)
    with ThreadPoolExecutor(1) as thread:
        dialled = thread.submit(lambda: greeted(client.connect(listener.address, 10.0)))
        accepted = listener.accept(10.0)
        assert accepted is not None
        assert accepted.limits == BEFORE_JOIN
        assert accepted.receive(10.0) == Join("oslo", "run")
        accepted.limits = JOINED
        ours = dialled.result()
        assert ours.limits == BEFORE_JOIN
        ours.limits = JOINED
    try:
        yield ours, accepted
    finally:
        for one in (ours, accepted, listener):
            one.close()


def greeted(connection: Connection) -> Connection:
    connection.send(Join("oslo", "run"))
    return connection


def answer(count: int, number: int) -> Answer:
    values = np.random.default_rng(number).normal(size=count).astype(np.float32)
    unit = Unit("gradient w", 0, count)
    return Answer(RoundId("tree", unit, number), 1.0, Payload("dense", "<f4", (values,)))


def same(one: Answer, other: Answer) -> bool:
    return one.round == other.round and np.array_equal(one.payload.buffers[0], other.payload.buffers[0])


def test_large_frames_pass_both_ways_at_once_from_several_threads(transports):
    counts = (1, 3000, 1 << 19, 70_001)

    def send(connection, number):
        connection.send(answer(counts[number], number))

    with connected(transports) as (ours, theirs), ThreadPoolExecutor(10) as threads:
        received = [
            threads.submit(lambda end=end: [end.receive(30.0) for _ in counts]) for end in (ours, theirs)
        ]
        sent = [threads.submit(send, end, number) for end in (ours, theirs) for number in range(len(counts))]
        for one in sent:
            one.result()
        for one in received:
            messages = sorted(one.result(), key=lambda message: message.round.number)
            assert all(same(message, answer(counts[i], i)) for i, message in enumerate(messages))
        assert ours.traffic.sent_bytes == theirs.traffic.received_bytes
        assert ours.traffic.received_bytes == theirs.traffic.sent_bytes


def test_who_waits_is_woken_by_the_end_of_its_own_or_the_other_side(transports):
    for closing in (0, 1):
        with connected(transports) as both, ThreadPoolExecutor(1) as thread:
            waiting = thread.submit(both[0].receive)
            both[closing].close()
            with pytest.raises(LinkClosedError):
                waiting.result(10.0)


def test_a_silent_peer_runs_into_the_deadline_and_is_none_the_worse(transports):
    with connected(transports) as (ours, theirs):
        with pytest.raises(DeadlineError, match="no whole message"):
            ours.receive(0.1)
        theirs.send(Welcome("root"))
        assert ours.receive(10.0) == Welcome("root")


def test_a_frame_that_is_too_large_is_refused_before_it_is_read(transports):
    with connected(transports) as (ours, theirs):
        theirs.limits = BEFORE_JOIN
        ours.send(answer(5000, 0))
        with pytest.raises(FrameError, match=r"20\d\d\d bytes: too large"):
            theirs.receive(10.0)


@pytest.mark.parametrize(
    ("kind", "begin"),
    [
        ("tcp", HEADER.pack(b"GKFP", VERSION, 1, 0, 4000, 0)),
        ("tls", b"\x16\x03\x01\x20\x00"),  # a record of a handshake, of 8 KiB
    ],
)
def test_a_byte_now_and_then_does_not_hold_a_connection_beyond_its_deadline(kind, begin, folder):
    server, _ = ends(kind, folder)
    done = threading.Event()

    def drips(address: Address) -> None:
        with connect(address) as sock, contextlib.suppress(OSError):
            sock.sendall(begin)
            while not done.wait(0.02):
                sock.sendall(b"x")

    with contextlib.closing(server.listen(LOCAL)) as listener, ThreadPoolExecutor(1) as thread:
        thread.submit(drips, listener.address)
        accepted = listener.accept(10.0)
        with contextlib.closing(accepted), pytest.raises(DeadlineError, match="no whole message"):
            accepted.receive(0.5)
        done.set()


def tuple_of(address: Address) -> tuple[str, int]:
    return address.host, address.port


def test_both_ends_know_who_the_other_is(folder):
    with connected(ends("tls", folder)) as (ours, theirs):
        assert ours.identity == {"root"}
        assert theirs.identity == {"oslo"}
    with connected(ends("tcp", folder)) as (ours, theirs):
        assert ours.identity is None
        assert theirs.identity is None


def outcomes(server: TlsTransport, dial) -> tuple[object, object]:
    """Returns what became of both ends: errors, or the messages that they received."""
    listener = server.listen(LOCAL)

    def dialled() -> object:
        try:
            connection = greeted(dial(listener.address))
            try:
                return connection.receive(10.0)
            finally:
                connection.close()
        except (LinkError, OSError) as error:
            return error

    with ThreadPoolExecutor(1) as thread:
        ours = thread.submit(dialled)
        accepted = listener.accept(10.0)
        try:
            theirs: object = accepted.receive(5.0)
            accepted.send(Welcome("root"))
        except LinkError as error:
            theirs = error
        accepted.close()
        listener.close()
        return ours.result(), theirs


def test_a_certificate_of_another_authority_is_refused_by_either_end(folder, tmp_path):
    server = TlsTransport(Certificates(folder, "root"))
    stranger = issue(tmp_path / "stranger", ["oslo"], Authority(days=2), trusts=AUTHORITY)
    ours, theirs = outcomes(
        server, lambda a: TlsTransport(Certificates(stranger, "oslo"), "root").connect(a, 5.0)
    )
    assert isinstance(ours, LinkClosedError)
    assert isinstance(theirs, LinkClosedError)
    assert "its certificate is refused, it is not of an authority in ca.crt" in str(theirs)
    trusting = issue(tmp_path / "trusting", ["oslo"], AUTHORITY, trusts=Authority(days=2))
    ours, theirs = outcomes(
        server, lambda a: TlsTransport(Certificates(trusting, "oslo"), "root").connect(a, 5.0)
    )
    assert "its certificate is refused, it is not of an authority in ca.crt" in str(ours)
    assert "refuses our certificate: it is not of its authority" in str(theirs)


def test_who_shows_no_certificate_is_refused(folder):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.load_verify_locations(folder / "root" / "ca.crt")
    ours, theirs = outcomes(
        TlsTransport(Certificates(folder, "root")), lambda a: Raw(context.wrap_socket(connect(a)))
    )
    assert isinstance(ours, OSError)
    assert isinstance(theirs, LinkClosedError)
    assert "shows no certificate" in str(theirs)


def test_older_versions_of_tls_are_refused(folder):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.load_verify_locations(folder / "root" / "ca.crt")
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    ours, theirs = outcomes(
        TlsTransport(Certificates(folder, "root")), lambda a: Raw(context.wrap_socket(connect(a)))
    )
    assert isinstance(ours, OSError)
    assert "does not speak TLS 1.3" in str(theirs)


def test_plain_text_and_tls_do_not_understand_each_other(folder):
    ours, theirs = outcomes(
        TlsTransport(Certificates(folder, "root")), lambda a: TcpTransport().connect(a, 5.0)
    )
    assert isinstance(ours, LinkError | FrameError) or ours is None
    assert isinstance(theirs, LinkClosedError)
    with pytest.raises(LinkError), contextlib.closing(TcpTransport().listen(LOCAL)) as listener:
        TlsTransport(Certificates(folder, "oslo"), "root").connect(listener.address, 0.5)


def test_who_dials_refuses_another_node_than_it_means_wherever_it_answers(folder):
    dial = TlsTransport(Certificates(folder, "oslo"), "paris")
    ours, theirs = outcomes(TlsTransport(Certificates(folder, "root")), lambda a: dial.connect(a, 5.0))
    assert "paris at 127.0.0.1" in str(ours)
    assert "has the certificate of ['root']" in str(ours)
    assert isinstance(theirs, LinkClosedError)


def test_a_slow_handshake_holds_up_nobody_else(folder):
    server, client = ends("tls", folder)
    listener = server.listen(LOCAL)
    with socket.create_connection(tuple_of(listener.address)), ThreadPoolExecutor(2) as threads:
        silent = listener.accept(10.0)
        assert silent is not None
        waiting = threads.submit(silent.receive, 30.0)
        dialled = threads.submit(lambda: greeted(client.connect(listener.address, 10.0)))
        accepted = listener.accept(10.0)
        assert accepted.receive(10.0) == Join("oslo", "run")
        assert not waiting.done()
        silent.close()
        with pytest.raises(LinkClosedError):
            waiting.result(10.0)
        for one in (dialled.result(), accepted, listener):
            one.close()


def test_the_next_connection_shows_the_certificate_that_lies_there_then(tmp_path):
    own = issue(tmp_path / "oslo", ["oslo"], AUTHORITY)
    server = TlsTransport(Certificates(issue(tmp_path / "root", ["root"], AUTHORITY), "root"))
    client = TlsTransport(Certificates(own, "oslo"), "root")
    with connected((server, client)) as (_, theirs):
        assert theirs.identity == {"oslo"}
    issue(own, ["oslo", "paris"], AUTHORITY)
    with connected((server, client)) as (_, theirs):
        assert theirs.identity == {"oslo", "paris"}


class Raw:
    """A peer of our own making over a socket."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock

    def send(self, message) -> None:
        self.sock.sendall(b"".join(map(bytes, encode(message))))

    def receive(self, timeout_s: float) -> bytes:
        self.sock.settimeout(timeout_s)
        received = self.sock.recv(4096)
        if not received:
            raise LinkClosedError("closed")
        return received

    def close(self) -> None:
        self.sock.close()


def connect(address: Address) -> socket.socket:
    return socket.create_connection(tuple_of(address), 10.0)
