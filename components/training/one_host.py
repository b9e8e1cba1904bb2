"""What lets several DGL "machines" share one host. Nothing else in the library knows of this.

DGL takes a partition for a machine: a process finds its machine by the addresses of the network
interfaces, and servers hand graph and features to the clients of their machine through POSIX shared
memory whose names hold only graph and feature, not the part. Two partitions on one host are then both
machine 0 and overwrite each other. Here each process is told its machine and a prefix for its shared
memory. It also shortens sleeps of up to 3 s at connecting, and starts samplers by fork, so that they
inherit all this.

Written against DGL 1.1.3, to whose private names it holds; `apply` checks that they are there.
"""

import multiprocessing
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dgl
from dgl import heterograph_index
from dgl.distributed import (
    dist_context,
    dist_graph,
    graph_partition_book,
    kvstore,
    rpc_client,
    rpc_server,
    shared_mem_utils,
)

_LISTEN = "0A"
"""State of a listening socket in `/proc/net/tcp`."""
RETRY_S = 0.1
"""Longest sleep of DGL's connection loops, seconds."""


def apply(machine: int, prefix: str) -> None:
    """Makes this process one of machine `machine`; called once, before `dgl.distributed.initialize`.

    Args:
        machine: number of the partition that this process stands beside.
        prefix: what the names of the machine's shared memory begin with; distinct for each machine and run.
    """
    rpc_client.get_local_machine_id = lambda _book: machine
    _prefix_shared_memory(prefix)
    for module in (rpc_client, rpc_server, dist_context):
        _replace(module, "time", _ShortSleep())
    _replace(dist_context, "mp", _ForkOnly)


def await_servers(ip_config: str, address: str, timeout_s: float) -> None:
    """Waits until a site's servers on this host listen, as a DGL client that comes too early sleeps for 3 s.

    A connection made only to see would be taken for a client, so the kernel's table is read instead.

    Args:
        ip_config: the site's address file.
        address: the address in it that is this host's.
        timeout_s: how long to wait.

    Raises:
        TimeoutError: some server does not listen by then.
    """
    lines = [line.split() for line in Path(ip_config).read_text(encoding="ascii").splitlines()]
    awaited = {int(port) for host, port in lines if host == address}
    deadline = time.monotonic() + timeout_s
    while missing := awaited - _listening():
        if time.monotonic() > deadline:
            raise TimeoutError(f"no DGL server listens on ports {sorted(missing)} after {timeout_s:.0f} s")
        time.sleep(RETRY_S / 2)


def _listening() -> set[int]:
    rows = Path("/proc/net/tcp").read_text(encoding="ascii").splitlines()[1:]
    fields = [row.split() for row in rows]
    return {int(row[1].rpartition(":")[2], 16) for row in fields if row[3] == _LISTEN}


def _prefix_shared_memory(prefix: str) -> None:
    def renamed(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(name: str, *args: Any, **kwargs: Any) -> Any:
            own = f"/{prefix}{name[1:]}" if name.startswith("/") else prefix + name
            return function(own, *args, **kwargs)

        return call

    for module in (kvstore, dist_graph, graph_partition_book, shared_mem_utils):
        _replace(module, "empty_shared_mem", renamed(module.empty_shared_mem))
    for module in (dist_graph, graph_partition_book):
        _replace(module, "exist_shared_mem_array", renamed(module.exist_shared_mem_array))
    opened = renamed(heterograph_index.create_heterograph_from_shared_memory)
    _replace(heterograph_index, "create_heterograph_from_shared_memory", opened)
    share = dgl.DGLGraph.shared_memory

    def shared_memory(graph: Any, name: str, formats: Any = ("coo", "csr", "csc")) -> Any:
        return share(graph, prefix + name, formats)

    _replace(dgl.DGLGraph, "shared_memory", shared_memory)


class _ShortSleep:
    """Stands for the module `time` where DGL sleeps between attempts to connect."""

    @staticmethod
    def sleep(seconds: float) -> None:
        time.sleep(min(seconds, RETRY_S))

    def __getattr__(self, name: str) -> Any:
        return getattr(time, name)


class _ForkOnly:
    """Stands for the module `multiprocessing` where DGL asks for processes that are spawned."""

    @staticmethod
    def get_context(_method: str) -> Any:
        return multiprocessing.get_context("fork")


def _replace(owner: Any, name: str, value: Any) -> None:
    assert hasattr(owner, name), f"{owner.__name__} has no {name}: this needs DGL 1.1.3"
    setattr(owner, name, value)
