"""The network of `wan.py`, measured for real where this user may build it."""

import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from benchmarks.wan_rig import guardian, links, shaping
from benchmarks.wan_rig.counters import Counters
from benchmarks.wan_rig.errors import RigError, TrialFailed
from benchmarks.wan_rig.execute import execute
from benchmarks.wan_rig.links import Links
from benchmarks.wan_rig.namespaces import call_within
from benchmarks.wan_rig.network import Network, network
from benchmarks.wan_rig.processes import Process, Processes
from benchmarks.wan_rig.requirements import missing
from benchmarks.wan_rig.systems.base import PYTHON_ENVIRONMENT
from support.faults import wait_until
from support.process_ends import gone as gone_process

TWO_SITES = links.endpoints(2)


def network_links(rate: float | None = None, **others) -> Links:
    return Links(endpoints=TWO_SITES, schedule=links.uniform(TWO_SITES, rate), **others)


def needs(**what: float) -> pytest.MarkDecorator:
    lacking = missing(network_links(**what))
    return pytest.mark.skipif(bool(lacking), reason=f"the network needs {', '.join(lacking)}")


pytestmark = needs()
RATE = 8e6
WIRE_SHARE = 1448 / 1514
"""Payload of a full packet by its length on the wire."""
PORT = 5000


@contextmanager
def listening(net: Network, endpoint: str) -> Iterator[socket.socket]:
    server = call_within(
        net.namespace(endpoint), lambda: socket.create_server((net.addresses[endpoint], PORT))
    )
    with server:
        server.settimeout(30)
        yield server


def connected(net: Network, source: str, target: str) -> socket.socket:
    address = (net.addresses[target], PORT)
    return call_within(net.namespace(source), lambda: socket.create_connection(address, 30))


def transfer_rate(net: Network, source: str, target: str, seconds: float = 1.5) -> float:
    """Bits of payload a second between the first and the last chunk that arrive."""
    with listening(net, target) as server, connected(net, source, target) as sender:
        receiver, _ = server.accept()
        feeder = threading.Thread(target=_feed, args=(sender, seconds))
        feeder.start()
        moments, sizes = [], []
        with receiver:
            while chunk := receiver.recv(1 << 16):
                moments.append(time.monotonic())
                sizes.append(len(chunk))
        feeder.join()
    return 8 * sum(sizes[1:]) / (moments[-1] - moments[0])


def _feed(sender: socket.socket, seconds: float) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        sender.sendall(bytes(8192))
    sender.shutdown(socket.SHUT_WR)


def round_trip_s(net: Network, source: str, target: str) -> float:
    """Shortest of some connections' first round trips."""
    took = []
    with listening(net, target):
        for _ in range(5):
            began = time.monotonic()
            connected(net, source, target).close()
            took.append(time.monotonic() - began)
    return min(took)


def classes(net: Network, endpoint: str) -> str:
    return execute(["tc", "-n", net.namespace(endpoint), "class", "show", "dev", "wan0"])


# Links


def test_every_link_carries_its_rate():
    with network(network_links(RATE)) as net:
        for source, target in (("root", "site-0"), ("site-1", "root"), ("site-0", "site-1")):
            assert transfer_rate(net, source, target) == pytest.approx(RATE * WIRE_SHARE, rel=0.1)


def test_a_pair_does_not_slow_another():
    rates = {**links.uniform(TWO_SITES, RATE)[0][1], ("root", "site-1"): RATE / 4}
    with network(Links(endpoints=TWO_SITES, schedule=((0.0, rates),))) as net:
        found: dict[str, float] = {}

        def measure(target: str) -> None:
            found[target] = transfer_rate(net, "root", target)

        both = [threading.Thread(target=measure, args=(site,)) for site in TWO_SITES[1:]]
        for thread in both:
            thread.start()
        for thread in both:
            thread.join()
    assert found["site-0"] == pytest.approx(RATE * WIRE_SHARE, rel=0.1)
    assert found["site-1"] == pytest.approx(RATE / 4 * WIRE_SHARE, rel=0.1)


def test_a_link_without_limit_is_far_faster():
    with network(network_links()) as net:
        assert transfer_rate(net, "root", "site-0", 0.3) > 20 * RATE


def test_rates_change_when_the_schedule_says():
    slow, fast = (links.uniform(TWO_SITES, rate)[0][1] for rate in (RATE / 4, RATE))
    with network(Links(endpoints=TWO_SITES, schedule=((0.0, slow), (0.05, fast)))) as net:
        assert transfer_rate(net, "root", "site-0", 1.0) == pytest.approx(RATE / 4 * WIRE_SHARE, rel=0.1)
        net.start_schedule(time.monotonic())
        wait_until(lambda: "ceil 8Mbit" in classes(net, "root"), "the second rate")
        assert transfer_rate(net, "root", "site-0", 1.0) == pytest.approx(RATE * WIRE_SHARE, rel=0.1)


def test_the_roots_links_share_its_limit():
    with network(network_links(None, root_rate=RATE)) as net:
        found: list[float] = []
        both = [
            threading.Thread(target=lambda s=site: found.append(transfer_rate(net, "root", s)))
            for site in TWO_SITES[1:]
        ]
        for thread in both:
            thread.start()
        for thread in both:
            thread.join()
        assert sum(found) == pytest.approx(RATE * WIRE_SHARE, rel=0.15)
        assert transfer_rate(net, "site-0", "root") == pytest.approx(RATE * WIRE_SHARE, rel=0.1)
        assert transfer_rate(net, "site-0", "site-1", 0.3) > 20 * RATE


@needs(delay_ms=1.0)
def test_a_delay_is_there_each_way_and_leaves_the_rate():
    with network(network_links(RATE, delay_ms=40.0)) as net:
        for source, target in (("root", "site-0"), ("site-0", "site-1")):
            assert 0.08 <= round_trip_s(net, source, target) < 0.12
        assert transfer_rate(net, "root", "site-0", 3.0) == pytest.approx(RATE * WIRE_SHARE, rel=0.15)
    with network(network_links(RATE)) as net:
        assert round_trip_s(net, "root", "site-0") < 0.08


@needs(loss_percent=1.0)
@pytest.mark.parametrize("more", [{}, pytest.param({"delay_ms": 5.0}, marks=needs(delay_ms=1.0))])
def test_packets_are_lost_once_and_by_chance(more):
    num_bursts, burst = 20, 100
    with network(network_links(loss_percent=10.0, **more)) as net:
        receiver, sender = (
            call_within(net.namespace(name), lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
            for name in ("site-0", "root")
        )
        with receiver, sender:
            receiver.bind((net.addresses["site-0"], PORT))
            came = 0
            for _ in range(num_bursts):  # all at once would overflow a buffer
                for _ in range(burst):
                    sender.sendto(bytes(100), (net.addresses["site-0"], PORT))
                came += num_received(receiver, 0.05)
            came += num_received(receiver, 1.0)
    # Six standard deviations of what is lost.
    assert 1 - came / (num_bursts * burst) == pytest.approx(0.1, abs=0.04)


def num_received(receiver: socket.socket, patience_s: float) -> int:
    number = 0
    while select.select([receiver], [], [], patience_s)[0]:
        receiver.recv(200)
        number += 1
    return number


def read_again(counters: Counters) -> float:
    """Waits until the counters have been read once more; returns when it began to."""
    began = time.monotonic()
    wait_until(lambda: counters._times[-1] > began, "a look at the counters")
    return began


def test_the_counters_agree_with_what_was_sent():
    with network(network_links(RATE)) as net, Counters(net) as counters:
        began = read_again(counters)
        with listening(net, "site-0") as server, connected(net, "root", "site-0") as sender:
            receiver, _ = server.accept()
            feeder = threading.Thread(target=_feed, args=(sender, 1.0))
            feeder.start()
            with receiver:
                num_bytes = sum(len(chunk) for chunk in iter(lambda: receiver.recv(1 << 16), b""))
            feeder.join()
        read_again(counters)
        ended = time.monotonic()
    assert counters.sent(["root"], began, ended).payload_bytes == pytest.approx(num_bytes, rel=0.02)
    assert counters.sent(["site-0"], began, ended).payload_bytes < 0.01 * num_bytes
    assert counters.sent(["site-1"], began, ended).num_bytes == 0


# What is left


def gone(net: Network) -> bool:
    return not any((guardian.FOLDER / net.namespace(name)).exists() for name in ("hub", *net.endpoints))


def sleeper(net: Network) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(net.within("site-0", ["sleep", "1000"]))


def inhabited(net: Network) -> bool:
    return bool(list(guardian.inhabitants([net.namespace("site-0")])))


def test_nothing_is_left_after_an_exception():
    class Stop(Exception):
        pass

    with pytest.raises(Stop), network(network_links(RATE)) as net:
        process = sleeper(net)
        wait_until(lambda: inhabited(net), "the process in its namespace")
        raise Stop
    assert gone(net)
    assert process.wait(10) == -signal.SIGKILL


def test_nothing_is_left_of_a_network_that_cannot_be_built(monkeypatch):
    built = []

    def refuse(names, *_):
        built.extend(names.values())
        raise RigError("no such qdisc")

    monkeypatch.setattr(shaping, "install", refuse)
    with pytest.raises(RigError, match="no such qdisc"), network(network_links(RATE)):
        pytest.fail("was built")
    assert len(built) == 4
    assert not any((guardian.FOLDER / name).exists() for name in built)


def test_the_kernels_words_are_told():
    with pytest.raises(RigError, match=r"tc .*: .*"), network(network_links(RATE)) as net:
        execute(["tc", "-n", net.namespace("root"), "qdisc", "add", "dev", "wan0", "root", "nosuch"])


BUILDER = """
import subprocess, sys, time
from wan_rig import guardian, links
from wan_rig.network import network
ends = links.endpoints(2)
with network(links.Links(endpoints=ends, schedule=links.uniform(ends, 1e7))) as net:
    child = subprocess.Popen(net.within("site-0", ["sleep", "1000"]))
    while not list(guardian.inhabitants([net.namespace("site-0")])):
        time.sleep(0.01)
    print(child.pid, net.namespace("site-0"), net.namespace("root"), net.hub, flush=True)
    time.sleep(1000)
"""


def test_nothing_is_left_when_the_builder_is_killed():
    environment = {**os.environ, **PYTHON_ENVIRONMENT}
    with subprocess.Popen(
        [sys.executable, "-c", BUILDER], stdout=subprocess.PIPE, env=environment
    ) as builder:
        child, *names = builder.stdout.readline().decode().split()
        assert all((guardian.FOLDER / name).exists() for name in names)
        builder.kill()
    wait_until(lambda: not any((guardian.FOLDER / name).exists() for name in names), "the removal")
    wait_until(lambda: gone_process(int(child)), "the end of what it started")


def endless(name: str, endpoint: str, **others) -> Process:
    return Process(name=name, endpoint=endpoint, command=("sleep", "1000"), **others)


def test_a_killed_process_is_named_and_the_others_end(tmp_path):
    planned = [endless("server", "root"), endless("worker", "site-0", finishes=True)]
    with network(network_links(RATE)) as net:
        with Processes(net, planned, tmp_path / "logs") as processes:
            assert not processes.all_finished()
            wait_until(lambda: inhabited(net), "the worker in its namespace")
            (worker,) = guardian.inhabitants([net.namespace("site-0")])
            os.kill(worker, signal.SIGKILL)
            with pytest.raises(TrialFailed, match="worker killed by SIGKILL: it printed nothing"):
                wait_until(processes.all_finished, "the end")
        assert not list(guardian.inhabitants([net.namespace("root"), net.namespace("site-0")]))
    assert gone(net)
