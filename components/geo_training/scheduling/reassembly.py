"""Puts the blocks of a unit together at the receiver, some of which were lost or come late (DGT).

A pure state machine; it never looks into a block. Blocks are known by sender, round and number, so that a
repeat counts once. The end marker, which comes on the reliable channel behind all blocks of that channel,
closes a round of a sender for good: the blocks that are here then are counted, and the sender is told which.
A block that comes later was declared not counted, and is dropped: its sender adds it to its next round.

Law, whatever is lost, repeated or comes in another order: what was counted and what the sender was told was
not counted are, together and once each, what it sent.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from ..wire.units import RoundId, Unit

T = TypeVar("T")

REMEMBERED = 64
"""Rounds of a unit, back from the newest, of which a sender may ask again what was counted."""


@dataclass(frozen=True, slots=True)
class Closed(Generic[T]):
    """What was counted of one sender in one round.

    Attributes:
        blocks: what came, by number; empty where `again`.
        again: whether it had been closed before.
    """

    blocks: dict[int, T]
    counted: frozenset[int]
    again: bool


@dataclass(slots=True)
class _Open(Generic[T]):
    since: float
    num_bytes: int = 0
    blocks: dict[int, T] = field(default_factory=dict)


@dataclass(slots=True)
class _Line(Generic[T]):
    """The rounds of one sender's unit in one scope."""

    open: dict[int, _Open[T]] = field(default_factory=dict)
    counted: dict[int, frozenset[int]] = field(default_factory=dict)
    number: int = -1


class Reassembly(Generic[T]):
    """The blocks that came to one node.

    Args:
        hold_s: seconds after which a round's blocks without an end marker are dropped.
        most_bytes: bytes that are held for rounds without an end marker; further blocks are dropped. A
            dropped block is as good as one that was lost.
    """

    def __init__(self, hold_s: float, most_bytes: int) -> None:
        self._hold_s = hold_s
        self._most_bytes = most_bytes
        self._held_bytes = 0
        self._lines: dict[tuple[str, str, Unit], _Line[T]] = {}

    @property
    def held_bytes(self) -> int:
        """Bytes of the blocks whose rounds are not closed."""
        return self._held_bytes

    def add(self, sender: str, round_id: RoundId, number: int, block: T, num_bytes: int, now: float) -> bool:
        """Takes a block.

        Args:
            sender: who sent it.
            round_id: the round that it is for.
            number: which of the round's blocks.
            block: anything; opaque here.
            num_bytes: that it takes here.
            now: seconds on any clock that never goes back.

        Returns:
            Whether it is kept; not one that is here already, comes late, or is too much.
        """
        line = self._line(sender, round_id)
        if self._is_closed(line, round_id) or self._held_bytes + num_bytes > self._most_bytes:
            return False
        current = line.open.setdefault(round_id.number, _Open(now))
        if number in current.blocks:
            return False
        current.blocks[number] = block
        current.num_bytes += num_bytes
        self._held_bytes += num_bytes
        return True

    def missing(self, sender: str, round_id: RoundId, numbers: Iterable[int]) -> list[int]:
        """Returns which of some blocks are not here, of a round that is not closed."""
        current = self._line(sender, round_id).open.get(round_id.number)
        return [number for number in numbers if current is None or number not in current.blocks]

    def close(self, sender: str, round_id: RoundId) -> Closed[T]:
        """Takes the end marker: counts what is here. A repeated one changes nothing."""
        line = self._line(sender, round_id)
        if self._is_closed(line, round_id):
            counted = line.counted.get(round_id.number, frozenset())
            return Closed({}, counted, again=True)
        current = line.open.pop(round_id.number, None)
        blocks = {} if current is None else current.blocks
        self._held_bytes -= 0 if current is None else current.num_bytes
        line.counted[round_id.number] = frozenset(blocks)
        line.number = max(line.number, round_id.number)
        for number in [number for number in line.counted if number <= line.number - REMEMBERED]:
            del line.counted[number]
        return Closed(blocks, frozenset(blocks), again=False)

    def counted(self, sender: str, round_id: RoundId) -> frozenset[int] | None:
        """Returns which blocks of a sender were counted in a round; None where it has sent no end marker."""
        return self._line(sender, round_id).counted.get(round_id.number)

    def tick(self, now: float) -> list[tuple[str, RoundId]]:
        """Drops what waits for its end marker for too long; called from time to time.

        Returns:
            Whose rounds were dropped.
        """
        dropped = []
        for (sender, scope, unit), line in self._lines.items():
            for number in [n for n, current in line.open.items() if now - current.since > self._hold_s]:
                self._held_bytes -= line.open.pop(number).num_bytes
                dropped.append((sender, RoundId(scope, unit, number)))
        return dropped

    def _line(self, sender: str, round_id: RoundId) -> _Line[T]:
        place = sender, round_id.scope, round_id.unit
        line = self._lines.get(place)
        if line is None:
            line = self._lines[place] = _Line()
        return line

    def _is_closed(self, line: _Line[T], round_id: RoundId) -> bool:
        return round_id.number in line.counted or round_id.number <= line.number - REMEMBERED
