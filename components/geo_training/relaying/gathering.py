"""What a relay has of each round, and when it hands on: a pure state machine; time is an argument.

A site hands on one contribution of a round: its own workers', with those of the sites that came meanwhile.
So of two contributions to a round one holds the other whole, or they have no worker in common; where the root
has both a part and the whole, by a site that went round a relay which then came after all, the whole counts.

Laws, whatever order, repeats or losses: a site's contribution is handed on once; what came before is in it,
and who comes later is told.
"""

from dataclasses import dataclass, field

from ..nodes.rounds import Contribution, Finished
from ..wire.units import RoundId, Unit

REMEMBERED = 64
"""Numbers of a unit, back from the newest handed on, in which who comes late is told."""
HOLDS = 0.5
"""Share of the time which a round may wait that a relay waits for others, before it hands on without them."""


@dataclass(slots=True)
class _Open:
    came: dict[str, Contribution] = field(default_factory=dict)
    awaited: frozenset[str] | None = None
    """Workers of the others; None before our own came."""
    excused: set[str] = field(default_factory=set)
    until: float = 0.0

    def complete(self, now: float) -> bool:
        covered = set(self.excused).union(*(c.covers for c in self.came.values()))
        return self.awaited is not None and (self.awaited <= covered or now >= self.until)


class Gathering:
    """The rounds of one site.

    Args:
        own: the site.
    """

    def __init__(self, own: str) -> None:
        self._own = own
        self._open: dict[RoundId, _Open] = {}
        self._handed: dict[Unit, dict[int, frozenset[str]]] = {}

    def own(
        self, round_id: RoundId, contribution: Contribution, expected: frozenset[str], now: float
    ) -> Finished | None:
        """Takes the site's own contribution; called once a round.

        Args:
            round_id: the round.
            contribution: what the site's workers bring.
            expected: the workers that the route leads through the site, its own too.
            now: seconds on a clock that never goes back.

        Returns:
            What is to be handed on; None while others are waited for.
        """
        current = self._open.setdefault(round_id, _Open())
        current.came[self._own] = contribution
        current.awaited = expected - contribution.covers
        current.until = now + HOLDS * contribution.wait_s
        return self._hand_on(round_id, now)

    def offer(self, round_id: RoundId, contribution: Contribution, now: float) -> Finished | bool:
        """Takes another site's contribution.

        Returns:
            What is to be handed on; or whether the contribution is in what was or will be: where not, it came
            too late and must go another way.
        """
        handed = self._handed.get(round_id.unit, {})
        if round_id.number in handed:
            return contribution.covers <= handed[round_id.number]
        if round_id.number <= max(handed, default=-1) - REMEMBERED:
            return False
        current = self._open.setdefault(round_id, _Open())
        current.came[contribution.sender] = contribution
        return self._hand_on(round_id, now) or True

    def excuse(self, round_id: RoundId, workers: frozenset[str], now: float) -> Finished | None:
        """Waits for some workers no more; returns what is to be handed on then."""
        if round_id.number in self._handed.get(round_id.unit, {}):
            return None
        self._open.setdefault(round_id, _Open()).excused |= workers
        return self._hand_on(round_id, now)

    def tick(self, now: float) -> list[Finished]:
        """Returns what is to be handed on because others took too long."""
        due = [self._hand_on(round_id, now) for round_id in list(self._open)]
        return [gathered for gathered in due if gathered is not None]

    def _hand_on(self, round_id: RoundId, now: float) -> Finished | None:
        current = self._open[round_id]
        if not current.complete(now):
            return None
        del self._open[round_id]
        contributions = tuple(sorted(current.came.values(), key=lambda c: c.sender))
        handed = self._handed.setdefault(round_id.unit, {})
        handed[round_id.number] = frozenset().union(*(c.covers for c in contributions))
        for number in [n for n in handed if n <= max(handed) - REMEMBERED]:
            del handed[number]
        return Finished(round_id, contributions)
