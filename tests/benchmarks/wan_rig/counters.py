"""Bytes that crossed the links, read from the counters of the hub's devices.

A packet is counted where it enters the hub: once, after its queue, before it may get lost. What is sent again
is counted again. Bytes between workers of one site never reach the hub.
"""

import bisect
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from .namespaces import enter
from .network import Network

HEADER_BYTES = 14 + 20 + 32
"""Ethernet, IPv4, and TCP with time stamps: what a packet has beside its payload; UDP has 24 less."""
EVERY_S = 0.004
"""Seconds between two samples; half of it is how far the moment of a byte may be off."""
_DEVICES = Path("/proc/thread-self/net/dev")


@dataclass(frozen=True, slots=True)
class Crossed:
    """What one or more endpoints sent."""

    num_bytes: float
    """With headers."""
    num_packets: float

    @property
    def payload_bytes(self) -> int:
        """Bytes without headers; exact for TCP, whose bare acknowledgements carry none."""
        return max(0, round(self.num_bytes - self.num_packets * HEADER_BYTES))


class Counters:
    """Samples the counters while the `with` block lasts.

    Args:
        network: the network, which must stay up until the block has ended.
    """

    def __init__(self, network: Network) -> None:
        self._network = network
        self._times: list[float] = []
        self._rows: list[dict[str, tuple[int, int]]] = []
        self._over = threading.Event()
        self._first = threading.Event()
        self._thread = threading.Thread(target=self._sample)

    @property
    def endpoints(self) -> tuple[str, ...]:
        """The root, then the sites."""
        return self._network.endpoints

    def __enter__(self) -> "Counters":
        self._thread.start()
        self._first.wait()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()

    def sent(self, endpoints: Sequence[str], since: float, until: float) -> Crossed:
        """Returns what some endpoints sent between two moments of the monotonic clock."""
        before, after = self._at(since), self._at(until)
        num_bytes = sum(after[name][0] - before[name][0] for name in endpoints)
        return Crossed(num_bytes, sum(after[name][1] - before[name][1] for name in endpoints))

    def _at(self, moment: float) -> dict[str, tuple[float, float]]:
        """Returns bytes and packets by endpoint, as if they had crossed evenly between two samples."""
        right = min(max(1, bisect.bisect(self._times, moment)), len(self._times) - 1)
        left = max(0, right - 1)
        span = self._times[right] - self._times[left]
        part = min(1.0, max(0.0, (moment - self._times[left]) / span)) if span else 0.0
        lower, upper = self._rows[left], self._rows[right]
        return {
            name: (low[0] + part * (upper[name][0] - low[0]), low[1] + part * (upper[name][1] - low[1]))
            for name, low in lower.items()
        }

    def _sample(self) -> None:
        try:
            enter(self._network.hub)
            while not self._over.is_set():
                self._read()
                self._first.set()
                self._over.wait(EVERY_S)
            self._read()
        finally:
            self._first.set()

    def _read(self) -> None:
        rows = {}
        for line in _DEVICES.read_text(encoding="ascii").splitlines()[2:]:
            device, _, numbers = line.partition(":")
            words = numbers.split()
            rows[device.strip()] = (int(words[0]), int(words[1]))
        # The row first: a moment is only looked for among the times.
        self._rows.append({name: rows[f"e{n}"] for n, name in enumerate(self._network.endpoints)})
        self._times.append(time.monotonic())
