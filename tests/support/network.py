"""A network in memory whose links can be cut, and whose processes can be killed, while a test runs."""

import threading
from collections.abc import Callable

from geokfp.components.geo_training.errors import LinkClosedError, RefusedError
from geokfp.components.geo_training.transport.base import Address
from support.memory_transport import MemoryConnection, MemoryListener, MemoryTransport


class Network:
    """All links; `at` gives a process its end of it."""

    def __init__(self) -> None:
        self.memory = MemoryTransport()
        self._lock = threading.Lock()
        self._listening: dict[Address, Process] = {}
        self._cut: set[frozenset[str]] = set()
        self._killed: set[Process] = set()
        self._links: list[tuple[Process, Process, MemoryConnection]] = []

    def at(self, node: str) -> "Process":
        """Returns the transport of a new process of a node."""
        return Process(self, node)

    def cut(self, one: str, other: str) -> None:
        """Lets all vanish that goes between two nodes, and no connection be made; nobody is told."""
        with self._lock:
            self._cut.add(frozenset((one, other)))

    def mend(self, one: str, other: str) -> None:
        """Ends a cut."""
        with self._lock:
            self._cut.discard(frozenset((one, other)))

    def is_up(self, one: str, other: str) -> bool:
        with self._lock:
            return frozenset((one, other)) not in self._cut

    def kill(self, process: "Process") -> None:
        """Ends a process as the kernel sees it: its connections and its address are gone."""
        with self._lock:
            self._killed.add(process)
            links = [link for dialler, dialled, link in self._links if process in (dialler, dialled)]
            addresses = [address for address, by in self._listening.items() if by is process]
            for address in addresses:
                del self._listening[address]
                self.memory.forget(address)
        for link in links:
            link.close()
        for end in process.at_death:
            end()

    def _check(self, process: "Process") -> None:
        if process in self._killed:
            raise RefusedError(f"{process.node} is dead")  # its threads are to end at once

    def connect(self, process: "Process", address: Address, timeout_s: float) -> MemoryConnection:
        with self._lock:
            self._check(process)
            peer = self._listening.get(address)
            if peer is None or frozenset((process.node, peer.node)) in self._cut:
                raise LinkClosedError(f"no way to {address}")
            connection = self.memory.connect(address, timeout_s)
            self._links.append((process, peer, connection))
        one, other = process.node, peer.node
        connection.is_up = connection.other.is_up = lambda: self.is_up(one, other)
        return connection

    def listen(self, process: "Process", address: Address) -> MemoryListener:
        with self._lock:
            self._check(process)
            self._listening[address] = process
            return self.memory.listen(address)


class Process:
    """See `Transport`; of one process of a node."""

    def __init__(self, network: Network, node: str) -> None:
        self.node = node
        self.at_death: list[Callable[[], None]] = []
        self._network = network

    def connect(self, address: Address, timeout_s: float) -> MemoryConnection:
        return self._network.connect(self, address, timeout_s)

    def listen(self, address: Address) -> MemoryListener:
        return self._network.listen(self, address)

    def kill(self) -> None:
        self._network.kill(self)
