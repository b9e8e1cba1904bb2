"""Aggregators and clients together: over memory with scripted faults, and over TCP."""

import socket
import struct
import threading
from itertools import pairwise

import numpy as np
import pytest
from geokfp.components._launch import free_ports
from geokfp.components.geo_training.compression import compression
from geokfp.components.geo_training.errors import DeadlineError, LinkError, RefusedError
from geokfp.components.geo_training.links.client import Terms
from geokfp.components.geo_training.transport.base import Address
from geokfp.components.geo_training.transport.tcp import TcpTransport
from geokfp.components.geo_training.wire.messages import JOINED, VERSION, Answer, Push, encode
from geokfp.components.geo_training.wire.units import SITE, TREE, RoundId, Unit
from support.geo_tree import at_once, topology, tree
from support.memory_transport import CUT, DROP, REPEAT, MemoryTransport

UNIT = Unit("gradient", 0, 3)
NOISE = np.random.default_rng(0).normal(size=9000).astype(np.float32)


@pytest.fixture(params=["memory", "tcp"])
def shape_and_transport(request):
    if request.param == "memory":
        return topology(2, 2), MemoryTransport()
    return topology(2, 2, free_ports(3)), TcpTransport()


def train(client, number: int, num_rounds: int, scope: str = TREE, leave: bool = True):
    """Pushes (number + 1) * round and returns all results."""
    results = []
    for index in range(num_rounds):
        values = np.full(3, (number + 1.0) * index, np.float32)
        pending = client.push(
            client.next_round(scope, UNIT), values, Terms(reduction="mean", weight=number + 1)
        )
        results.append(client.wait(pending))
    if leave:
        client.close()
    return results


def test_every_worker_gets_the_mean_of_all_sites(shape_and_transport):
    shape, transport = shape_and_transport
    with tree(shape, transport) as whole:
        results = at_once(lambda name: train(whole.client(name), shape.workers.index(name), 5), shape.workers)
    assert not whole.errors
    for per_worker in results.values():
        for index, result in enumerate(per_worker):
            assert result.weight == 10.0
            np.testing.assert_array_equal(result.values, np.full(3, index, np.float32))


def test_a_site_round_stays_in_the_site_and_counts_no_byte_on_its_link_to_the_root(shape_and_transport):
    shape, transport = shape_and_transport

    def work(name):
        client = whole.client(name)
        before = client.peer_traffic()["root"]
        results = train(client, shape.workers.index(name), 3, SITE, leave=False)
        after = client.peer_traffic()["root"]
        client.close()
        return results[-1].weight, before == after

    with tree(shape, transport) as whole:
        results = at_once(work, shape.workers)
    assert [results[name] for name in shape.workers] == [(3.0, True), (3.0, True), (7.0, True), (7.0, True)]


def test_bytes_are_counted_alike_at_both_ends(shape_and_transport):
    shape, transport = shape_and_transport

    def work(name):
        client = whole.client(name)
        train(client, 0, 4, leave=False)
        ours = client.traffic
        theirs = client.peer_traffic()
        train(client, 0, 1, leave=False)
        client.close()
        query_bytes = 21
        return ours, theirs[name], query_bytes

    with tree(shape, transport) as whole:
        results = at_once(work, shape.workers)
    for ours, theirs, query_bytes in results.values():
        assert ours.sent_bytes == theirs.received_bytes - query_bytes
        assert ours.received_bytes == theirs.sent_bytes
        assert ours.sent_bytes > 4 * 12


def test_bytes_are_counted_as_they_are_on_the_socket():
    values = compression("top_k(ratio=0.1, bits=4) + zstd").up().encode(Unit("gradient", 0, 9000), NOISE)
    push = Push("a", RoundId(TREE, Unit("gradient", 0, 9000), 3), "mean", 2.0, 30.0, ("a",), values)
    answer = b"".join(bytes(piece) for piece in encode(Answer(push.round, 2.0, values)))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        connection = TcpTransport().connect(Address(*listener.getsockname()), 5.0)
        connection.limits = JOINED
        peer, _ = listener.accept()
        with peer:
            for _ in range(3):
                connection.send(push)
            peer.sendall(answer * 2)
            for _ in range(2):
                assert isinstance(connection.receive(5.0), Answer)
            connection.close()
            received = 0
            while piece := peer.recv(1 << 16):
                received += len(piece)
    assert (connection.traffic.sent_bytes, connection.traffic.received_bytes) == (received, 2 * len(answer))
    assert received > 3 * values.num_bytes


def test_workers_without_samples_take_part_with_nothing():
    shape, transport = topology(1, 2), MemoryTransport()

    def work(name):
        client = whole.client(name)
        first = name == shape.workers[0]
        round_id = client.next_round(TREE, UNIT)
        values = np.ones(3, np.float32) if first else None
        one = client.wait(client.push(round_id, values, Terms(reduction="mean", weight=4 if first else 0)))
        round_id = client.next_round(TREE, UNIT)
        none = client.wait(client.push(round_id, None, Terms(reduction="mean", weight=0)))
        client.close()
        return one, none

    with tree(shape, transport) as whole:
        results = at_once(work, shape.workers)
    for one, none in results.values():
        np.testing.assert_array_equal(one.values, np.full(3, 0.25, np.float32))
        assert none.values is None
        assert none.weight == 0.0


@pytest.mark.parametrize("fault", [DROP, REPEAT, CUT])
@pytest.mark.parametrize("kind", [Push, Answer])
def test_lost_repeated_and_cut_messages_change_no_result(fault, kind):
    shape, transport = topology(2, 2), MemoryTransport()
    for number in (1, 2, 4):
        transport.faults.add(fault, lambda m, n=number: isinstance(m, kind) and m.round.number == n, times=2)
    with tree(shape, transport, retry_s=0.1) as whole:
        results = at_once(lambda name: train(whole.client(name), shape.workers.index(name), 6), shape.workers)
    assert transport.faults.outstanding == 0
    assert not whole.errors
    for per_worker in results.values():
        assert [float(result.values[0]) for result in per_worker] == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]


def test_a_rounds_priority_is_kept_on_every_link_up_and_down():
    shape, transport = topology(2, 2), MemoryTransport()
    seen = []
    transport.faults.add(
        "none", lambda m: isinstance(m, Push | Answer) and bool(seen.append((type(m), m.priority)))
    )

    def work(name):
        client = whole.client(name)
        round_id = client.next_round(TREE, UNIT)
        terms = Terms(reduction="sum", priority=7 if name == shape.workers[0] else 9)
        result = client.wait(client.push(round_id, np.ones(3, np.float32), terms))
        client.close()
        return result.priority

    with tree(shape, transport) as whole:
        assert set(at_once(work, shape.workers).values()) == {7}
    assert sorted(seen, key=str) == sorted(
        [(Push, 7)] * 2 + [(Push, 9)] * 4 + [(Answer, 7)] * 6, key=str
    )  # four workers and two sites push


def test_results_do_not_depend_on_the_order_of_arrival():
    shape, transport = topology(2, 2), MemoryTransport()
    values = {name: np.float32(10.0 ** (3 * i)) / 7 for i, name in enumerate(shape.workers)}

    def work(name):
        client = whole.client(name)
        pending = []
        for _ in range(20):
            round_id = client.next_round(TREE, UNIT)
            pending.append(
                client.push(round_id, np.full(3, values[name], np.float32), Terms(reduction="sum", weight=1))
            )
        results = [client.wait(one).values for one in pending]
        client.close()
        return results

    with tree(shape, transport) as whole:
        results = at_once(work, shape.workers)
    every = [part for parts in results.values() for part in parts]
    assert all(np.array_equal(one, other) for one, other in pairwise(every))


def test_a_worker_that_stays_away_ends_the_round_with_its_name_everywhere():
    shape, transport = topology(2, 2), MemoryTransport()
    here = [name for name in shape.workers if name != "site-1/trainer-1"]
    all_are_here = threading.Barrier(len(here))

    def work(name):
        client = whole.client(name)
        all_are_here.wait(20)
        with pytest.raises(RefusedError, match=r"waited . s in round 0 of gradient.*site-1/trainer-1"):
            train(client, 0, 1)
        client.close("heard it")

    with tree(shape, transport, round_timeout_s=1.0) as whole:
        at_once(work, here)
    assert set(whole.errors) == {"site-1", "root", "site-0"}


def test_a_worker_that_gives_up_ends_the_run_with_its_reason():
    shape, transport = topology(2, 1), MemoryTransport()

    def work(name):
        client = whole.client(name)
        if name == "site-0/trainer-0":
            client.close("loss is nan")
            return
        with pytest.raises(RefusedError, match="site-0: site-0/trainer-0: loss is nan"):
            train(client, 0, 1)

    with tree(shape, transport) as whole:
        at_once(work, shape.workers)
    assert set(whole.errors) == {"root", "site-0", "site-1"}


def test_strangers_and_other_runs_are_refused():
    shape, transport = topology(1, 1), MemoryTransport()
    with tree(shape, transport) as whole:
        with pytest.raises(RefusedError, match="no child of site-0"):
            whole.client("site-0/trainer-9", "site-0")
        with pytest.raises(RefusedError, match="another run"):
            whole.client("site-0/trainer-0", run="yesterday")
        client = whole.client("site-0/trainer-0")
        assert len(train(client, 0, 2)) == 2


def test_a_peer_that_breaks_the_rules_loses_its_own_connection_only():
    shape, transport = topology(1, 2), MemoryTransport()

    def work(name):
        client = whole.client(name)
        if name == shape.workers[0]:
            bad = client.next_round("moon", UNIT)
            with pytest.raises(RefusedError, match="no route"):
                client.wait(client.push(bad, np.ones(3, np.float32), Terms(reduction="mean", weight=1)))
            client = whole.client(name)
            bad = client.next_round(TREE, Unit("other", 0, 1))
            with pytest.raises(RefusedError, match="brings 3 values"):
                client.wait(client.push(bad, np.ones(3, np.float32), Terms(reduction="mean", weight=1)))
            client = whole.client(name)
        return train(client, 0, 2)

    with tree(shape, transport) as whole:
        results = at_once(work, shape.workers)
    assert all(len(result) == 2 for result in results.values())
    assert not whole.errors


def test_nobody_listens_is_said_with_the_peer_and_the_time():
    shape, transport = topology(1, 1), MemoryTransport()
    del shape
    with pytest.raises(LinkError, match="nobody listens"):
        transport.connect(Address("127.0.0.1", 1), 1.0)
    (port,) = free_ports(1)
    with pytest.raises(LinkError, match=f"cannot connect to 127.0.0.1:{port}"):
        TcpTransport().connect(Address("127.0.0.1", port), 1.0)


def test_a_silent_tcp_peer_runs_into_the_deadline():
    listener = TcpTransport().listen(Address("127.0.0.1", 0))
    connection = TcpTransport().connect(listener.address, 5.0)
    accepted = listener.accept(5.0)
    assert accepted is not None
    with pytest.raises(DeadlineError, match="no whole message"):
        connection.receive(0.1)
    for one in (connection, accepted, listener):
        one.close()


def test_hostile_bytes_at_a_listening_port_end_that_connection_only():
    ports = free_ports(2)
    shape = topology(1, 1, ports)
    with tree(shape, TcpTransport()) as whole:
        client = whole.client("site-0/trainer-0")
        for noise in (
            b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
            struct.pack("<4sBBHIQ", b"GKFP", VERSION, 3, 1, 99, 1 << 40),
        ):
            with socket.create_connection(("127.0.0.1", ports[1]), 5.0) as hostile:
                hostile.sendall(noise)
                reply = b""
                while piece := hostile.recv(4096):
                    reply += piece
                assert reply[:4] == b"GKFP"
        assert len(train(client, 0, 3)) == 3
    assert not whole.errors
