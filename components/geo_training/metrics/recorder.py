"""Counts of one process: what an `Observer` is told, added up. Thread-safe, bounded, without global state.

Rounds count once each, by the number of the unit that is farthest on; only those of gradients and changes of
weights over all sites do, or, at a site, those of its workers.
"""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from ..compression.per_unit import may_lose
from ..messages import Payload
from ..units import RoundId
from .bins import Bins
from .observer import TRAINING, Span

LEAST_BYTES = 4096
"""A shorter frame comes in in one or two pieces, and says nothing of the link's rate."""


@dataclass(slots=True)
class LinkCounts:
    """What went over one link, as seen from one end.

    `*_dense_bytes` are of the values as they are, `*_wire_bytes` of their payloads; of gradients and changes.
    """

    rounds: int = 0
    """Rounds that were answered."""
    newest: int = 0
    """Rounds that were begun."""
    up_dense_bytes: int = 0
    up_wire_bytes: int = 0
    down_dense_bytes: int = 0
    down_wire_bytes: int = 0
    arrived_bytes: int = 0
    """Of the longer frames that came in at this end, in `arriving_s`."""
    arriving_s: float = 0.0
    outstanding_s: float = 0.0
    """Seconds in which at least one contribution of the lower end had not been answered."""
    outstanding: set[tuple[str, str, int, int]] = field(default_factory=set)
    """Contributions that have not been answered: scope, key, offset and number of the round."""
    since: float = 0.0
    """When the first of these came."""


class Recorder:
    """See `Observer`; any thread may call it.

    Args:
        clock: seconds on a clock that never goes back.
        now: seconds since 1970, by which records of several machines are put side by side.
    """

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, now: Callable[[], float] = time.time
    ) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._links: dict[str, LinkCounts] = {}
        self._steps = 0
        self._last_step: float | None = None
        self.began = clock()
        self.began_unix = now()
        self._bins = Bins(self.began)

    def pushed(self, link: str, round_id: RoundId, payload: Payload) -> None:
        """See `Observer`."""
        if not may_lose(round_id.unit):
            return
        with self._lock:
            counts = self._link(link)
            if (which := _which(round_id)) in counts.outstanding:
                return  # sent again
            counts.newest = max(counts.newest, round_id.number + 1)
            if payload.buffers:
                counts.up_dense_bytes += round_id.unit.count * np.dtype(payload.dtype).itemsize
                counts.up_wire_bytes += payload.num_bytes
            if not counts.outstanding:
                counts.since = self._clock()
            counts.outstanding.add(which)

    def answered(self, link: str, round_id: RoundId, payload: Payload) -> None:
        """See `Observer`."""
        if not may_lose(round_id.unit):
            return
        with self._lock:
            counts = self._link(link)
            counts.rounds = max(counts.rounds, round_id.number + 1)
            if payload.buffers:
                counts.down_dense_bytes += round_id.unit.count * np.dtype(payload.dtype).itemsize
                counts.down_wire_bytes += payload.num_bytes
            if counts.outstanding:
                counts.outstanding.discard(_which(round_id))
                if not counts.outstanding:
                    counts.outstanding_s += self._clock() - counts.since

    def spent(self, span: Span) -> None:
        """See `Observer`."""
        with self._lock:
            if span.link and span.num_bytes >= LEAST_BYTES:
                counts = self._link(span.link)
                counts.arrived_bytes += span.num_bytes
                counts.arriving_s += span.ended - span.began
            self._bins.add(f"{span.activity} {span.link}".rstrip(), span.began, span.ended)

    def stepped(self, at: float) -> None:
        """See `Observer`."""
        with self._lock:
            self._steps += 1
            if self._last_step is not None:
                self._bins.add(TRAINING, self._last_step, at)
            self._last_step = at

    @property
    def elapsed_s(self) -> float:
        """Seconds since it began."""
        return self._clock() - self.began

    @property
    def steps(self) -> int:
        """Steps taken."""
        with self._lock:
            return self._steps

    def seconds(self, activity: str) -> float:
        """Returns the seconds spent with one thing."""
        with self._lock:
            return self._bins.total_s(activity)

    def links(self) -> dict[str, LinkCounts]:
        """Returns the counts of each link; what is outstanding counts until now."""
        with self._lock:
            now = self._clock()
            return {
                name: replace(
                    counts,
                    outstanding_s=counts.outstanding_s + (now - counts.since if counts.outstanding else 0.0),
                    outstanding=set(counts.outstanding),
                )
                for name, counts in self._links.items()
            }

    def staleness(self) -> dict[str, int]:
        """Returns how many rounds each link is behind the one that is farthest on."""
        with self._lock:
            farthest = max((counts.newest for counts in self._links.values()), default=0)
            return {name: farthest - counts.newest for name, counts in self._links.items()}

    def timeline(self) -> dict[str, object]:
        """Returns the seconds by activity and time, as JSON holds them."""
        with self._lock:
            return self._bins.to_dict()

    def _link(self, name: str) -> LinkCounts:
        if name not in self._links:
            self._links[name] = LinkCounts()
        return self._links[name]


def _which(round_id: RoundId) -> tuple[str, str, int, int]:
    return round_id.scope, round_id.unit.key, round_id.unit.offset, round_id.number
