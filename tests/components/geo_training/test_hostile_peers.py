"""Hostile bytes and peers at listening ports of real processes, beside an exchange that goes on."""

import contextlib
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import psutil
import pytest
from geokfp.components._launch import free_ports
from geokfp.components.geo_training.errors import LinkError, RefusedError
from geokfp.components.geo_training.links.client import Client, Terms
from geokfp.components.geo_training.links.lobby import MOST_WAITING
from geokfp.components.geo_training.server import dial
from geokfp.components.geo_training.transport.certificates import Certificates
from geokfp.components.geo_training.tree_job import TreeJob
from geokfp.components.geo_training.wire.messages import Join
from geokfp.components.geo_training.wire.units import OWN, Unit
from geokfp.pipelines._command_line.authority import Authority
from support.certificates import issue, issue_each
from support.faults import wait_until
from support.geo_tree import topology
from support.hostile import AFTER_JOIN, BEFORE_JOIN, frame, hostile
from support.node_processes import nodes

UNIT = Unit("gradient", 0, 1000)
RELAY = "where site-0 accepts other sites"
AUTHORITY = Authority(days=2)
MOST_BYTES = 64 << 20
"""What hostile peers may cost a process: four times what the waiting ones may take."""
WARM_UP = 300
JOIN = Join("site-1", "run")


class Exchange:
    """Rounds of site-0's worker that pass through its node and end at the root, until `stop`."""

    def __init__(self, client: Client) -> None:
        self.rounds = 0
        self._client = client
        self._stopping = threading.Event()
        self._thread = ThreadPoolExecutor(1)
        self._running = self._thread.submit(self._run)

    def _run(self) -> None:
        values = np.ones(UNIT.count, np.float32)
        while not self._stopping.is_set():
            round_id = self._client.next_round(f"{OWN}site-0", UNIT)
            terms = Terms(reduction="mean", weight=1.0)
            result = self._client.wait(self._client.push(round_id, values * self.rounds, terms))
            np.testing.assert_array_equal(result.values, values * self.rounds)
            self.rounds += 1

    def stop(self) -> None:
        """Raises what ended it."""
        self._stopping.set()
        self._running.result(30.0)
        self._thread.shutdown()


class Target:
    """A tree of processes under attack.

    Attributes:
        job: the tree.
        processes: by node.
        wrap: makes of a socket that is connected to the root one that speaks as site-1.
    """

    def __init__(self, job: TreeJob, processes: dict[str, psutil.Popen], folder: Path | None) -> None:
        self.job, self.processes = job, processes
        self._certificates = folder and Certificates(folder, "site-1")

    def connect(self, node: str) -> socket.socket:
        address = self.job.topology.accepting[0].accepts if node == RELAY else self.job.topology.address(node)
        return socket.create_connection((address.host, address.port), 10.0)

    def secure(self, sock: socket.socket) -> socket.socket:
        if not self._certificates:
            return sock
        return self._certificates.context(server_side=False).wrap_socket(sock)

    def resident(self) -> dict[str, int]:
        return {name: process.memory_info().rss for name, process in self.processes.items()}

    def check_alive(self, folder: Path) -> None:
        for name, process in self.processes.items():
            assert process.is_running(), (folder / f"{name}.txt").read_text()
            assert process.poll() is None, (folder / f"{name}.txt").read_text()


@pytest.fixture(params=["plain", "tls"])
def target(request, tmp_path) -> Iterator[tuple[Target, Exchange]]:
    shape = topology(2, 1, free_ports(4), accepting=1)
    names = [site.name for site in shape.sites]
    folder = (
        issue_each(tmp_path / "certificates", ["root", *names], AUTHORITY) if request.param == "tls" else None
    )
    job = TreeJob(
        run_id="run",
        workers=dict.fromkeys(names, 1),
        topology=shape,
        certificates=str(folder or ""),
        transmission="fifo + tsengine",
    )
    with nodes(job, tmp_path) as processes:
        client = dial(job, "site-0/trainer-0", "site-0")
        exchange = Exchange(client)
        of_attacks = Target(job, processes, folder)
        yield of_attacks, exchange
        of_attacks.check_alive(tmp_path)
        exchange.stop()
        client.close()


def attack(target: Target, exchange: Exchange, number: int) -> None:
    """Sends so many frames, each on a new connection, to root, site and relay; some once joined."""
    draw, rounds_before = np.random.default_rng(number), exchange.rounds
    at_first: dict[str, int] = {}
    for index in range(number):
        node = ("root", "site-0", "root", RELAY)[index % 4]
        inside = index % 10 == 0 and node == "root"
        with contextlib.suppress(OSError):  # the node was first
            send(target, node, hostile(draw, AFTER_JOIN if inside else BEFORE_JOIN), inside=inside)
        if index == WARM_UP:
            at_first = target.resident()
        if index % 500 == 499:
            check_memory(target, at_first)
    check_memory(target, at_first)
    wait_until(lambda: exchange.rounds > rounds_before, "a round of the exchange", 30.0)


def send(target: Target, node: str, content: bytes, *, inside: bool) -> None:
    sock = target.connect(node)
    # Without the usual end, which would keep each of many thousand ports for a minute.
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
    try:
        if inside:
            sock = target.secure(sock)
            sock.sendall(frame(JOIN))
            sock.recv(1000)
        sock.sendall(content)
        sock.shutdown(socket.SHUT_WR)
        sock.recv(1000)
    finally:
        sock.close()


def check_memory(target: Target, at_first: dict[str, int]) -> None:
    now = target.resident()
    assert all(now[name] - resident < MOST_BYTES for name, resident in at_first.items()), (at_first, now)


def test_hostile_frames_end_their_own_connection_only(target):
    attack(*target, 1500)


@pytest.mark.long
@pytest.mark.timeout(1700)
def test_a_hundred_thousand_hostile_frames_end_their_own_connection_only(target):
    attack(*target, 100_000)


def test_peers_that_say_nothing_take_a_bounded_number_of_places(target):
    attacked, _ = target
    root = attacked.processes["root"]
    before, threads = attacked.resident(), root.num_threads()
    with contextlib.ExitStack() as stack:
        silent = [stack.enter_context(attacked.connect("root")) for _ in range(4 * MOST_WAITING)]
        for sock in silent[: 2 * MOST_WAITING]:
            sock.settimeout(30.0)
            with contextlib.suppress(ConnectionResetError):
                assert sock.recv(1) == b""  # made room
        assert root.num_threads() <= threads + 2 * MOST_WAITING
        site = stack.enter_context(attacked.secure(attacked.connect("root")))
        site.sendall(frame(JOIN))
        assert site.recv(1000)[:4] == b"GKFP"
        check_memory(attacked, before)


def test_only_the_node_that_a_certificate_names_may_join(tmp_path):
    shape = topology(2, 1, free_ports(3))
    names = [site.name for site in shape.sites]
    folder = issue_each(tmp_path / "certificates", ["root", *names], AUTHORITY)
    other_node = issue(tmp_path / "other-node", ["site-1"], AUTHORITY)
    other_authority = issue(tmp_path / "other-authority", ["site-0"], Authority(days=2), trusts=AUTHORITY)

    def with_certificates(where: Path | str, **times: float) -> TreeJob:
        plain = dict.fromkeys(names, 1)
        return TreeJob(run_id="run", workers=plain, topology=shape, certificates=str(where), **times)

    with nodes(with_certificates(folder), tmp_path) as processes:
        worker = dial(with_certificates(folder), "site-0/trainer-0", "site-0")
        with pytest.raises(RefusedError, match=r"site-0 comes with the certificate of \['site-1'\]"):
            dial(with_certificates(other_node), "site-0", "root")
        for wrong in (other_authority, ""):
            with pytest.raises(LinkError, match="root: not reached within 1 s"):
                dial(with_certificates(wrong, reconnect_s=1.0), "site-0", "root")
        stranger = issue(tmp_path / "stranger", ["site-7"], AUTHORITY)
        with pytest.raises(RefusedError, match="site-7 is no child of root in the topology"):
            dial(with_certificates(stranger), "site-7", "root")
        assert Exchange(worker).stop() is None
        assert all(process.poll() is None for process in processes.values())
