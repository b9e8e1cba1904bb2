"""Free ports, and shared memory left behind."""

import socket
from collections import deque
from pathlib import Path

import pytest
from geokfp.components._launch import free_ports, ports
from geokfp.components._launch.shared_memory import remove_shared_memory


def test_ports_differ_and_are_free() -> None:
    found = free_ports(50)
    assert len(set(found)) == 50
    for port in found:
        with socket.socket() as one:
            one.bind(("127.0.0.1", port))


def test_ports_are_not_those_of_outgoing_connections() -> None:
    low = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    assert low <= 11_000 or all(port < low for port in free_ports(50))


def test_a_port_is_returned_once_though_nobody_listens_there_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = free_ports(2)
    drawn = iter([one, one, other, *free_ports(1)])
    monkeypatch.setattr(ports, "_given", deque([other]))
    monkeypatch.setattr(ports, "_candidate", lambda: next(drawn))
    assert free_ports(1) == [one]
    assert free_ports(1)[0] not in {one, other}


def test_no_ports_are_no_ports() -> None:
    assert free_ports(0) == []


def test_only_names_that_begin_so_are_removed(tmp_path: Path) -> None:
    for name in ("run1.a", "run1.b", "run2.a", "x.run1.a"):
        (tmp_path / name).write_bytes(b"")
    remove_shared_memory(["run1."], tmp_path)
    remove_shared_memory([], tmp_path)
    remove_shared_memory(["run"], tmp_path / "missing")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run2.a", "x.run1.a"]
