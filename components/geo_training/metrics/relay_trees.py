"""The trees that rounds went by where sites relay for each other, counted. Pure, of bounded size."""

from collections.abc import Mapping
from dataclasses import dataclass

MOST_TREES = 16
"""Trees that are remembered; of more, those that rounds went by last."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TreeRecord:
    """A tree, and how often it was used."""

    parents: Mapping[str, str]
    """The node above it by site: whom it hands contributions to, or from whom it gets results."""
    rounds: int
    """Rounds that went by it."""


class TreeCounts:
    """Counts trees; those of one direction."""

    def __init__(self) -> None:
        self._rounds: dict[tuple[tuple[str, str], ...], int] = {}

    def add(self, parents: Mapping[str, str]) -> None:
        """Counts a round that went by a tree."""
        tree = tuple(sorted(parents.items()))
        self._rounds[tree] = self._rounds.pop(tree, 0) + 1  # taken out, so that it comes last
        if len(self._rounds) > MOST_TREES:
            del self._rounds[next(iter(self._rounds))]

    def records(self) -> tuple[TreeRecord, ...]:
        """Returns the trees, that of the last round last."""
        return tuple(TreeRecord(parents=dict(tree), rounds=rounds) for tree, rounds in self._rounds.items())
