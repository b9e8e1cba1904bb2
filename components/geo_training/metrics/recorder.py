"""Counts of one process: what an `Observer` is told, added up. Thread-safe, bounded, without global state.

Rounds count once each, by the number of the unit that is farthest on; only those of gradients and changes of
weights over all sites do, or, at a site, those of its workers.

Telling is to cost next to nothing, as a small round lasts for a millisecond or two: what is told goes into a
queue, which is added up when somebody looks, or when it is full.
"""

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TypeAlias

import numpy as np

from ..compression.per_unit import may_lose
from ..wire.messages import Payload
from ..wire.relay_messages import Trees
from ..wire.units import RoundId, Unit
from .bins import Bins
from .observer import TRAINING, Span
from .relay_trees import TreeCounts, TreeRecord

MOST_TOLD = 256
"""Things told that are kept before they are added up: so few that they are still in the processor's cache."""
LEAST_BYTES = 4096
"""A shorter frame comes in in one or two pieces, and says nothing of the link's rate."""


@dataclass(slots=True)
class LinkCounts:
    """What went over one link, as seen from one end.

    `*_dense_bytes` are of the values as they are, `*_wire_bytes` of their payloads; of gradients and changes.
    Of blocks (DGT) they are of all that were sent at the one end, of those that came in time at the other.
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
    outstanding: "set[_Which]" = field(default_factory=set)
    """Contributions that have not been answered."""
    since: float = 0.0
    """When the first of these came."""
    answered: "dict[tuple[str, str, int], int]" = field(default_factory=dict)
    """The newest answer of each unit: one that is given again counts once."""


_Which: TypeAlias = tuple[str, str, int, int]
"""Scope, key, offset and number of a round."""
_Round: TypeAlias = tuple[bool, float, str, RoundId, str, int]
"""Whether it was pushed (else answered), when, the link, the round, the dtype of its values, empty where it
has none, and the bytes of their payload."""


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
        self._told: deque[_Round | Span | Trees | float] = deque()
        self._links: dict[str, LinkCounts] = {}
        self._trees_up, self._trees_down = TreeCounts(), TreeCounts()
        self._steps = 0
        self._last_step: float | None = None
        self.began = clock()
        self.began_unix = now()
        self._bins = Bins(self.began)

    def pushed(self, link: str, round_id: RoundId, payload: Payload, block_bytes: int = 0) -> None:
        """See `Observer`."""
        dtype, told = payload.dtype if payload.buffers else "", self._told
        told.append((True, self._clock(), link, round_id, dtype, payload.num_bytes + block_bytes))
        if len(told) > MOST_TOLD:
            self._make_room()

    def answered(self, link: str, round_id: RoundId, payload: Payload, block_bytes: int = 0) -> None:
        """See `Observer`."""
        dtype, told = payload.dtype if payload.buffers else "", self._told
        told.append((False, self._clock(), link, round_id, dtype, payload.num_bytes + block_bytes))
        if len(told) > MOST_TOLD:
            self._make_room()

    def spent(self, span: Span) -> None:
        """See `Observer`."""
        self._tell(span)

    def stepped(self, at: float) -> None:
        """See `Observer`."""
        self._tell(at)

    def relayed(self, trees: Trees) -> None:
        """A round went by these trees; told at the root where sites relay for each other, once a round."""
        self._tell(trees)

    @property
    def elapsed_s(self) -> float:
        """Seconds since it began."""
        return self._clock() - self.began

    @property
    def steps(self) -> int:
        """Steps taken."""
        with self._lock:
            self._add_up()
            return self._steps

    def seconds(self, activity: str) -> float:
        """Returns the seconds spent with one thing."""
        with self._lock:
            self._add_up()
            return self._bins.total_s(activity)

    def links(self) -> dict[str, LinkCounts]:
        """Returns the counts of each link; what is outstanding counts until now."""
        with self._lock:
            self._add_up()
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
            self._add_up()
            farthest = max((counts.newest for counts in self._links.values()), default=0)
            return {name: farthest - counts.newest for name, counts in self._links.items()}

    def trees(self) -> tuple[tuple[TreeRecord, ...], tuple[TreeRecord, ...]]:
        """Returns the trees that contributions went by, and those of results; that of the last round last."""
        with self._lock:
            self._add_up()
            return self._trees_up.records(), self._trees_down.records()

    def timeline(self) -> dict[str, object]:
        """Returns the seconds by activity and time, as JSON holds them."""
        with self._lock:
            self._add_up()
            return self._bins.to_dict()

    def _tell(self, what: _Round | Span | Trees | float) -> None:
        self._told.append(what)
        if len(self._told) > MOST_TOLD:
            self._make_room()

    def _make_room(self) -> None:
        if self._lock.acquire(blocking=False):  # else somebody adds up already
            try:
                self._add_up()
            finally:
                self._lock.release()

    def _add_up(self) -> None:
        """Adds up what was told until now; called with the lock."""
        told = self._told
        for _ in range(len(told)):
            what = told.popleft()
            kind = type(what)
            if kind is tuple:
                self._add_round(what)  # type: ignore[arg-type]
            elif isinstance(what, Span):
                self._add_span(what)
            elif isinstance(what, float):
                self._add_step(what)
            elif isinstance(what, Trees):
                self._trees_up.add(what.up)
                self._trees_down.add(what.down)

    def _add_round(self, told: _Round) -> None:
        is_push, at, link, round_id, dtype, wire = told
        unit = round_id.unit
        if not _counts(unit.key):
            return
        dense = _itemsize(dtype) * unit.count if dtype else 0
        counts, which = self._link(link), (round_id.scope, unit.key, unit.offset, round_id.number)
        if is_push:
            _add_push(counts, which, at, (dense, wire))
        else:
            _add_answer(counts, which, at, (dense, wire))

    def _add_span(self, span: Span) -> None:
        activity, began, ended, link, num_bytes = span
        if link and num_bytes >= LEAST_BYTES:
            counts = self._link(link)
            counts.arrived_bytes += num_bytes
            counts.arriving_s += ended - began
        self._bins.add(f"{activity} {link}" if link else activity, began, ended)

    def _add_step(self, at: float) -> None:
        self._steps += 1
        if self._last_step is not None:
            self._bins.add(TRAINING, self._last_step, at)
        self._last_step = at

    def _link(self, name: str) -> LinkCounts:
        counts = self._links.get(name)
        if counts is None:
            counts = self._links[name] = LinkCounts()
        return counts


@cache
def _itemsize(dtype: str) -> int:
    return np.dtype(dtype).itemsize


@cache
def _counts(key: str) -> bool:
    return may_lose(Unit(key, 0, 0))


def _add_push(counts: LinkCounts, which: _Which, at: float, num_bytes: tuple[int, int]) -> None:
    if which in counts.outstanding:
        return  # sent again
    dense, wire = num_bytes
    if which[3] >= counts.newest:
        counts.newest = which[3] + 1
    counts.up_dense_bytes += dense
    counts.up_wire_bytes += wire
    if not counts.outstanding:
        counts.since = at
    counts.outstanding.add(which)


def _add_answer(counts: LinkCounts, which: _Which, at: float, num_bytes: tuple[int, int]) -> None:
    place, number = which[:3], which[3]
    if number >= counts.rounds:
        counts.rounds = number + 1
    if counts.answered.get(place) != number:
        counts.answered[place] = number
        dense, wire = num_bytes
        counts.down_dense_bytes += dense
        counts.down_wire_bytes += wire
    if counts.outstanding:
        counts.outstanding.discard(which)
        if not counts.outstanding:
            counts.outstanding_s += at - counts.since
