"""The type of service of connections: above that of the datagrams beside them, at both ends."""

import socket

import pytest
from geokfp.components._launch import free_ports
from geokfp.components.geo_training.links.in_blocks import service_of
from geokfp.components.geo_training.topology import read
from geokfp.components.geo_training.transport import sockets
from geokfp.components.geo_training.transport.base import Address
from geokfp.components.geo_training.transport.certificates import Certificates
from geokfp.components.geo_training.transport.tcp import TcpTransport
from geokfp.components.geo_training.transport.tls import TlsTransport
from geokfp.components.geo_training.tree_job import TreeJob
from geokfp.pipelines._command_line.authority import Authority
from support.certificates import issue_each


@pytest.mark.parametrize(
    ("transmission", "service"),
    [("fifo", 0), ("fifo + dgt", 96), ("fifo + dgt(channels=7)", 224), ("fifo + dgt(fraction=1)", 0)],
)
def test_a_link_between_sites_is_served_before_its_datagrams(transmission, service):
    shape = read({}, {"oslo": 1}, (7000, 7001))
    job = TreeJob(run_id="run", workers={"oslo": 1}, topology=shape, transmission=transmission)
    assert service_of(job) == service


@pytest.mark.parametrize("service", [0, 96])
@pytest.mark.parametrize("is_secured", [False, True])
def test_both_ends_of_a_connection_have_it(tmp_path, monkeypatch, is_secured, service):
    marked = []
    monkeypatch.setattr(sockets, "mark", lambda sock, wanted: marked.append(marks(sock, wanted)))
    if is_secured:
        folder = issue_each(tmp_path, ["root", "oslo"], Authority(days=2))
        server = TlsTransport(Certificates(folder, "root"), service=service)
        client = TlsTransport(Certificates(folder, "oslo"), "root", service=service)
    else:
        server = client = TcpTransport(service=service)
    address = Address("127.0.0.1", free_ports(1)[0])
    listener = server.listen(address)
    if is_secured:
        client = TcpTransport(service=service)  # shakes no hands, which would need a thread
    connection = client.connect(address, 5.0)
    accepted = listener.accept(5.0)
    for one in (connection, accepted, listener):
        one.close()
    assert marked == [service, service]


_mark = sockets.mark


def marks(sock: socket.socket, service: int) -> int:
    _mark(sock, service)
    return sock.getsockopt(socket.IPPROTO_IP, socket.IP_TOS)


def test_an_ipv6_connection_has_a_traffic_class():
    with socket.socket(socket.AF_INET6, socket.SOCK_STREAM) as sock:
        sockets.mark(sock, 96)
        assert sock.getsockopt(socket.IPPROTO_IPV6, socket.IPV6_TCLASS) == 96
