"""What a node holds of its rounds in memory, and what it puts by: a few models, however late others are.

A contribution comes to the `Shelf` when those that wait in memory are `MOST_WAITING` already, where nobody
is held back (`room`): under a quorum, where relays bring what is others', or where several roots have parts
of one order. So do the oldest results when those that somebody may ask for are of more: under a quorum up to
64 rounds of them. Nothing that is put by is changed, and nobody waits for anything but the file.
"""

import threading
from collections import defaultdict
from collections.abc import Callable, Collection
from dataclasses import replace

import numpy as np

from ..wire.messages import Answer
from ..wire.units import FLOAT_BYTES, RoundId, Unit
from .rounds import Contribution, Rounds
from .shelf import Shelf

MOST_WAITING = 0.5
"""What waits in memory of contributions, in models."""
MOST_RESULTS = 1.0
"""What is in memory of results, in models of each scope: the newest of all units."""
LEAST_BYTES = 1 << 21
"""Both where a model is small: to put by would save nothing."""


class Holdings:
    """See the module. Any thread may call it.

    Args:
        rounds: the node's.
        lock: held where they are used; not by who calls this.
        puts_by: whether contributions are put by.
    """

    def __init__(self, rounds: Rounds, lock: threading.Lock, *, puts_by: bool) -> None:
        self.shelf = Shelf()
        self._rounds = rounds
        self._lock = lock
        self._puts_by = puts_by
        self._units: set[tuple[str, Unit]] = set()
        self._models: defaultdict[str, defaultdict[str, int]] = defaultdict(lambda: defaultdict(int))

    def bring(self, round_id: RoundId, brought: Contribution) -> Contribution:
        """Returns a contribution in the form in which it is to wait for others."""
        values = brought.value.held
        if values is None:
            return brought
        with self._lock:
            self._note(round_id)
            is_much = self._rounds.held_bytes + values.nbytes > self._most(MOST_WAITING, max)
        assert isinstance(values, np.ndarray)  # it has just come
        shelved = self.shelf.put(values) if is_much and self._puts_by else None
        if shelved is None:
            return replace(brought, num_bytes=values.nbytes)
        return replace(brought, value=replace(brought.value, held=shelved))

    def settle(self, round_id: RoundId, answer: Answer) -> tuple[str, ...]:
        """See `Rounds.settle`; puts older results by."""
        with self._lock:
            self._note(round_id)
            peers = self._rounds.settle(round_id, answer, answer.payload.num_bytes)
            oldest = self._rounds.oldest_results(self._most(MOST_RESULTS, sum))
        for place, result in oldest:
            shelved = self.shelf.put_answer(result)
            if shelved is None:  # as little would be written of the others
                break
            with self._lock:
                self._rounds.put_by(place, result, shelved)
        return peers

    def _note(self, round_id: RoundId) -> None:
        scope, unit = round_id.scope, round_id.unit
        if (scope, unit) not in self._units:
            self._units.add((scope, unit))
            self._models[scope][unit.role] += FLOAT_BYTES * unit.count

    def _most(self, models: float, of_scopes: Callable[[Collection[int]], int]) -> float:
        """Returns what is held in memory at most; `sum` for what each scope has for itself."""
        by_scope = [max(roles.values()) for roles in self._models.values()]
        return max(models * of_scopes(by_scope or [0]), LEAST_BYTES)
