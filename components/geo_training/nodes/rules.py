"""When a round is finished: rules that know who is in it, and how long it has waited."""

from dataclasses import dataclass
from typing import Protocol


class Rule(Protocol):
    """Tells when a round is finished; asked at each contribution and as time passes."""

    def finished(
        self, covered: frozenset[str], idle: frozenset[str], expected: frozenset[str], waited_s: float
    ) -> bool:
        """Tells whether a round is finished.

        Args:
            covered: workers that are in the round.
            idle: those of them that bring nothing.
            expected: workers that the route leads through this node, but for those that are known to stay
                away.
            waited_s: seconds since the round's first contribution.
        """


@dataclass(frozen=True, slots=True)
class All:
    """A round is finished when every expected worker is in it."""

    def finished(
        self,
        covered: frozenset[str],
        idle: frozenset[str],  # noqa: ARG002
        expected: frozenset[str],
        waited_s: float,  # noqa: ARG002
    ) -> bool:
        """See `Rule`."""
        return expected <= covered


@dataclass(frozen=True, slots=True)
class Quorum:
    """A round is finished with `workers` in it, once `grace_s` has passed for the others; sooner with all.

    `Quorum(workers=1)` finishes with any contribution. Who comes later is counted in the unit's next round.
    Who brings nothing does not count, as it has ended and would finish every round at once. Of workers that
    are known to stay away there must not be so many that fewer than `workers` are left.
    """

    workers: int
    grace_s: float = 0.0

    def finished(
        self, covered: frozenset[str], idle: frozenset[str], expected: frozenset[str], waited_s: float
    ) -> bool:
        """See `Rule`."""
        enough = len(covered - idle) >= self.workers and waited_s >= self.grace_s
        return enough or (expected <= covered and len(covered) >= self.workers)
