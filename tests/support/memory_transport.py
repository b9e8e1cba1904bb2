"""A transport inside one process, whose faults are scripted message by message."""

import queue
import threading
from collections.abc import Callable

from geokfp.components.geo_training.errors import DeadlineError, LinkClosedError, SilenceError
from geokfp.components.geo_training.transport.base import Address, Traffic
from geokfp.components.geo_training.wire.messages import BEFORE_JOIN, Limits, Message, encode, read_message

DROP, REPEAT, CUT = "drop", "repeat", "cut"


class Faults:
    """What goes wrong: each scripted fault happens to the first `times` messages that it is for."""

    def __init__(self) -> None:
        self._script: list[list] = []
        self._lock = threading.Lock()

    def add(self, fault: str, when: Callable[[Message], bool], times: int = 1) -> None:
        with self._lock:
            self._script.append([fault, when, times])

    def of(self, message: Message) -> str | None:
        with self._lock:
            for entry in self._script:
                if entry[2] and entry[1](message):
                    entry[2] -= 1
                    return entry[0]
        return None

    @property
    def outstanding(self) -> int:
        with self._lock:
            return sum(entry[2] for entry in self._script)


class MemoryConnection:
    identity = None
    peer = "memory"
    reached = None

    def __init__(self, limits: Limits, inbox: queue.Queue, faults: Faults) -> None:
        self.limits = limits
        self.traffic = Traffic()
        self.silence_s: float | None = None
        self.is_up: Callable[[], bool] = lambda: True
        self.other: MemoryConnection
        self._inbox = inbox
        self._faults = faults
        self._lock = threading.Lock()
        self._closed = False

    def send(self, message: Message) -> None:
        frame = b"".join(bytes(piece) for piece in encode(message))
        fault = self._faults.of(message)
        with self._lock:
            if self._closed or self.other._closed:
                raise LinkClosedError("memory: closed")
            self.traffic.sent_bytes += len(frame)
        if fault == CUT:
            self.close()
            raise LinkClosedError("memory: cut")
        if not self.is_up():
            return  # as a kernel takes bytes for a link that is cut
        if fault != DROP:
            self.other._inbox.put(frame)
        if fault == REPEAT:
            self.other._inbox.put(frame)

    def receive(self, timeout_s: float | None = None) -> Message:
        silence_s = self.silence_s
        try:
            frame = self._inbox.get(timeout=timeout_s if silence_s is None else silence_s)
        except queue.Empty:
            raise (DeadlineError if silence_s is None else SilenceError)("memory: nothing came") from None
        if frame is None:
            self._inbox.put(None)
            raise LinkClosedError("memory: closed")
        message, num_bytes = read_message(reader_of(frame), self.limits)
        self.traffic.received_bytes += num_bytes
        return message

    def close(self) -> None:
        self._closed = True
        self._inbox.put(None)
        self.other._inbox.put(None)


class MemoryListener:
    def __init__(self, address: Address) -> None:
        self.address = address
        self.backlog: queue.Queue = queue.Queue()
        self.closed = False

    def accept(self, timeout_s: float) -> MemoryConnection | None:
        try:
            return self.backlog.get(timeout=timeout_s)
        except queue.Empty:
            return None

    def close(self) -> None:
        self.closed = True
        while not self.backlog.empty():
            connection = self.backlog.get()
            if connection is not None:
                connection.close()
        self.backlog.put(None)


class MemoryTransport:
    def __init__(self) -> None:
        self.faults = Faults()
        self._listeners: dict[Address, MemoryListener] = {}

    def connect(self, address: Address, timeout_s: float) -> MemoryConnection:
        if address not in self._listeners or self._listeners[address].closed:
            raise self.refused(address)
        ours = MemoryConnection(BEFORE_JOIN, queue.Queue(), self.faults)
        theirs = MemoryConnection(BEFORE_JOIN, queue.Queue(), self.faults)
        ours.other, theirs.other = theirs, ours
        self._listeners[address].backlog.put(theirs)
        return ours

    def forget(self, address: Address) -> None:
        """Lets nobody listen at an address any more."""
        self._listeners.pop(address).close()

    def refused(self, address: Address) -> LinkClosedError:
        return LinkClosedError(f"memory: nobody listens at {address}")

    def listen(self, address: Address) -> MemoryListener:
        self._listeners[address] = MemoryListener(address)
        return self._listeners[address]


def reader_of(frame: bytes) -> Callable[[memoryview], None]:
    """Reads from bytes as a socket would; past their end the connection is closed."""
    left = memoryview(frame)

    def read_into(memory: memoryview) -> None:
        nonlocal left
        if memory.nbytes > left.nbytes:
            raise LinkClosedError("memory: closed within a frame")
        memory[:] = left[: memory.nbytes]
        left = left[memory.nbytes :]

    return read_into
