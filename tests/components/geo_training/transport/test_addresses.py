"""Names that are looked up anew for every connection, whose addresses are all tried, and that move."""

import contextlib
import socket
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from geokfp.components._launch import free_ports
from geokfp.components.geo_training.compression import compression
from geokfp.components.geo_training.compression.dense import Dense
from geokfp.components.geo_training.errors import LinkClosedError, LinkError
from geokfp.components.geo_training.links.carrier import InBlocks
from geokfp.components.geo_training.links.client import Terms
from geokfp.components.geo_training.scheduling.dgt import Dgt
from geokfp.components.geo_training.scheduling.differential import Differential
from geokfp.components.geo_training.transport.base import Address
from geokfp.components.geo_training.transport.certificates import Certificates
from geokfp.components.geo_training.transport.datagram import DatagramSocket
from geokfp.components.geo_training.transport.sockets import Resolved
from geokfp.components.geo_training.transport.tcp import TcpTransport
from geokfp.components.geo_training.transport.tls import TlsTransport
from geokfp.components.geo_training.wire.block_messages import Beside
from geokfp.components.geo_training.wire.messages import Join
from geokfp.components.geo_training.wire.units import TREE, Unit
from geokfp.pipelines._command_line.authority import Authority
from hypothesis import given
from hypothesis import strategies as st
from support.certificates import issue_each
from support.geo_tree import topology, tree

LOCAL = Address("127.0.0.1", 0)
HUB = Address("hub.example", 7000)


class Names:
    """A resolver double: what each name stands for at the moment."""

    def __init__(self, **addresses: list[Address]) -> None:
        self.addresses = addresses
        self.asked = 0

    def __call__(self, address: Address) -> list[Resolved]:
        self.asked += 1
        if address.host not in self.addresses:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return [(socket.AF_INET, one.host, one.port) for one in self.addresses[address.host]]


class Forwarder:
    """Passes bytes on to an address, as a router with NAT does; `close` forgets all connections."""

    def __init__(self, to: Address, host: str = "127.0.0.1") -> None:
        self._to = to
        self._listener = socket.create_server((host, 0))
        self.address = Address(*self._listener.getsockname())
        self._sockets: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def close(self) -> None:
        for sock in (self._listener, *self._sockets):
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
            sock.close()
        for thread in self._threads:
            thread.join()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                inside, _ = self._listener.accept()
                outside = socket.create_connection((self._to.host, self._to.port))
                self._sockets += [inside, outside]
                for pair in ((inside, outside), (outside, inside)):
                    self._threads.append(threading.Thread(target=self._pass_on, args=pair))
                    self._threads[-1].start()

    def _pass_on(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while piece := source.recv(1 << 16):
                sink.sendall(piece)
            sink.shutdown(socket.SHUT_WR)


@given(st.sampled_from(["hub.example", "127.0.0.1", "::1", "fe80::1"]), st.integers(1, 65535))
def test_an_address_is_read_as_it_is_shown(host, port):
    address = Address(host, port)
    assert Address.parse(str(address), "root") == address


def test_a_training_goes_on_when_the_name_of_its_site_moves():
    unit = Unit("gradient", 0, 3)
    ports = free_ports(2)
    names = Names()
    with tree(topology(1, 1, ports), TcpTransport(), retry_s=0.3) as whole:
        whole.transport = TcpTransport(names)
        real = whole.topology.sites[0].listens
        whole.topology = topology(1, 1, ports)
        hosts = ("127.0.0.1", "127.0.0.2", "127.0.0.1")
        forwarder = Forwarder(real, hosts[0])
        names.addresses[real.host] = [forwarder.address]
        client = whole.client("site-0/trainer-0")
        for number, host in enumerate(hosts):
            if number:
                moved = Forwarder(real, host)
                names.addresses[real.host] = [moved.address]
                forwarder.close()
                forwarder = moved
            values = np.full(3, number, np.float32)
            pending = client.push(client.next_round(TREE, unit), values, Terms(reduction="sum"))
            np.testing.assert_array_equal(client.wait(pending).values, values)
        assert names.asked >= len(hosts)
        client.close()
        forwarder.close()
    assert not whole.errors


def test_all_addresses_of_a_name_are_tried_in_their_order():
    (dead,) = free_ports(1)
    with contextlib.closing(TcpTransport().listen(LOCAL)) as listener:
        names = Names(**{HUB.host: [Address("127.0.0.1", dead), listener.address]})
        with contextlib.closing(TcpTransport(names).connect(HUB, 10.0)) as connection:
            assert connection.reached == listener.address
            connection.send(Join("oslo", "run"))
            with contextlib.closing(listener.accept(10.0)) as accepted:
                assert accepted.receive(10.0) == Join("oslo", "run")


def test_a_name_without_an_address_is_an_error_of_the_link_that_may_pass():
    for names, reason in ((Names(), "not known"), (Names(**{HUB.host: []}), "no address")):
        with pytest.raises(LinkClosedError, match=f"cannot connect to hub.example:7000.*{reason}"):
            TcpTransport(names).connect(HUB, 1.0)


def test_another_node_at_one_address_is_passed_by_for_the_right_one_at_the_next(tmp_path):
    folder = issue_each(tmp_path, ["root", "oslo", "paris"], Authority(days=2))
    listeners = [TlsTransport(Certificates(folder, name)).listen(LOCAL) for name in ("paris", "root")]
    names = Names(**{HUB.host: [listener.address for listener in listeners]})
    transport = TlsTransport(Certificates(folder, "oslo"), "root", names)

    def serve(listener) -> bool:
        with contextlib.closing(listener.accept(10.0)) as accepted:
            try:
                return accepted.receive(10.0) == Join("oslo", "run")
            except LinkError:
                return False

    with ThreadPoolExecutor(2) as threads:
        served = [threads.submit(serve, listener) for listener in listeners]
        with contextlib.closing(transport.connect(HUB, 10.0)) as connection:
            assert connection.identity == {"root"}
            assert connection.reached == listeners[1].address
            connection.send(Join("oslo", "run"))
            assert [one.result() for one in served] == [False, True]
    for listener in listeners:
        listener.close()


def test_a_name_is_listened_at_where_it_is_this_machines():
    names = Names(**{HUB.host: [Address("192.0.2.1", 0), Address("127.0.0.1", 0)]})
    with contextlib.closing(TcpTransport(names).listen(HUB)) as listener:
        assert listener.address.host == "127.0.0.1"
    with contextlib.closing(DatagramSocket(HUB, resolve=names)) as datagrams:
        assert datagrams.port
    elsewhere = Names(**{HUB.host: [Address("192.0.2.1", 7000)]})
    with pytest.raises(LinkClosedError, match="cannot listen at hub"):
        TcpTransport(elsewhere).listen(HUB)
    for nowhere in (elsewhere, Names(), Names(**{HUB.host: []})):
        with pytest.raises(LinkClosedError, match="no datagrams at hub"):
            DatagramSocket(HUB, resolve=nowhere)


def test_datagrams_go_to_the_address_at_which_the_peer_has_answered():
    class LinkDouble:
        def __init__(self, reached):
            self.reached = reached

        def send(self, message):
            assert isinstance(message, Beside)

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taker:
        taker.bind(("127.0.0.1", 0))
        taker.settimeout(10.0)
        blocks = compression("none").up_blocks()
        sender = InBlocks(Dense(), Differential(Dgt(), blocks), HUB, "root", secret=False)
        sender.joined(LinkDouble(Address(*taker.getsockname())))
        assert taker.recv(2000)
        sender.close()
