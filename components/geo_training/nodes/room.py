"""Which contributions may come in, so that a node holds little more than a few models: a pure state machine.

What a node holds of unfinished rounds is what quick children are ahead of the slowest. A child may always
bring what belongs to a round that another one has begun, for that comes nearer to its end. It may begin a
round only while those that are unfinished, of all children but one, would be of `MOST_MODELS` at most; or
where none of those that are waited for has less here. So with two children nobody waits.

Nobody waits for ever, where all have to be in every round and do the same in the same order, though what they
send may overtake on the way. Suppose that all stand still. Of those that are waited for, the one that has
least, A, is not held back. So all that it has said is here, and it waits for a round R of its own, in which
some B is missing. What B is held back with is of a round that nobody has begun, so not of one that A has come
to; B would be past the place where A waits, and have the result of R. So B is not held back: it has not come
to R, and waits for a round before, where the same is true of some C; which comes to an end, as each waits at
an earlier place. Children in other orders, such as one that is the reverse of the others', go on in turns, as
who has least may begin. For what nobody has thought of, `gate` has a time.

Where relays bring what is others', a quorum leaves some out, or several roots have parts of one order, nobody
is to be held back: there `holdings` puts by what is too much. Knows nothing of values, threads or networks.
"""

from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import TypeAlias

from ..wire.units import RoundId, Unit

MOST_MODELS = 1.25
"""What may be held of rounds that are not finished, of all children but the slowest, in models."""
LEAST_BYTES = 1 << 22
"""The same where a model is small: holding back would save nothing."""

NotAwaited: TypeAlias = Callable[[RoundId], Collection[str]]
"""Says of a round which children need not come for it to finish."""


@dataclass(slots=True)
class _Alike:
    """The unfinished rounds of one scope, role and number."""

    example: RoundId
    num_rounds: int = 0
    brought: Counter[str] = field(default_factory=Counter)


class Room:
    """What a node holds of unfinished rounds.

    Args:
        children: who brings it; none where nobody is held back.
    """

    def __init__(self, children: Collection[str] = ()) -> None:
        self._children = sorted(children)
        self._rounds: dict[RoundId, dict[str, int]] = {}
        self._alike: dict[tuple[str, str, int], _Alike] = {}
        self._held: Counter[str] = Counter()
        self._begun_bytes = 0
        self._models: Counter[tuple[str, str]] = Counter()
        self._units: set[tuple[str, Unit]] = set()
        self._finished: dict[tuple[str, Unit], int] = {}

    def brought(self, child: str, round_id: RoundId, num_bytes: int) -> None:
        """Notes a contribution to a round that it does not finish; 0 bytes for one without values."""
        if not self._children:
            return
        unit, scope = round_id.unit, round_id.scope
        alike = self._alike.setdefault((scope, unit.role, round_id.number), _Alike(round_id))
        held = self._rounds.get(round_id)
        if held is None:
            held = self._rounds[round_id] = {}
            alike.num_rounds += 1
        alike.brought[child] += child not in held
        before, self._begun_bytes = held.get(child, 0), self._begun_bytes - max(held.values(), default=0)
        held[child] = num_bytes
        self._held[child] += num_bytes - before
        self._begun_bytes += max(held.values())
        if num_bytes and (scope, unit) not in self._units:
            self._units.add((scope, unit))
            self._models[scope, unit.role] += num_bytes

    def finished(self, round_id: RoundId) -> None:
        """Notes that a round's contributions are merged."""
        place = round_id.scope, round_id.unit
        self._finished[place] = max(round_id.number, self._finished.get(place, 0))
        held = self._rounds.pop(round_id, None)
        if held is None:
            return
        self._begun_bytes -= max(held.values())
        self._held.subtract(held)
        key = (round_id.scope, round_id.unit.role, round_id.number)
        alike = self._alike[key]
        alike.num_rounds -= 1
        alike.brought.subtract(held.keys())
        if not alike.num_rounds:
            del self._alike[key]

    def lets_in(self, child: str, round_id: RoundId, not_awaited: NotAwaited) -> bool:
        """Tells whether a child may bring a contribution now."""
        if round_id in self._rounds or self._begun_bytes < self._most_begun():
            return True
        if round_id.number <= self._finished.get((round_id.scope, round_id.unit), -1):
            return True  # of who starts again, or asks again: nothing of it is kept
        own = self._held[child]
        return all(self._held[other] >= own for other in self._awaited(not_awaited))

    @property
    def held_bytes(self) -> int:
        """Bytes of all contributions to unfinished rounds."""
        return self._held.total()

    def _most_begun(self) -> float:
        if not self._children:
            return float("inf")
        model = max(self._models.values(), default=0)
        return max(MOST_MODELS * model, LEAST_BYTES) / max(1, len(self._children) - 1)

    def _awaited(self, not_awaited: NotAwaited) -> set[str]:
        awaited: set[str] = set()
        for alike in self._alike.values():
            missing = {child for child in self._children if alike.brought[child] < alike.num_rounds}
            awaited |= missing.difference(not_awaited(alike.example)) if missing - awaited else set()
        return awaited
