"""Two models on the same nodes, and which of them wins. Pure: works on arrays of classes."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..ingest.graph import Array
from .config import Criterion

NEAR = 1e-9
"""Scores are shares of counts; a margin that is met but for rounding is met."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Scores:
    """How right a model is."""

    accuracy: float
    """Share of the nodes whose class it finds."""
    macro_f1: float
    """Mean of the F1 of all classes that the nodes have."""
    f1: Array
    """F1 of each class, float64 [c]; NaN of a class that no node has."""

    def of(self, metric: str) -> float:
        """Returns the score of one of `METRICS`."""
        return float(getattr(self, metric))


@dataclass(frozen=True, kw_only=True, eq=False)
class Comparison:
    """What champion and challenger make of the same n nodes of c classes."""

    label_names: tuple[str, ...]
    """Names of the c classes."""
    truth: Array
    """int64 [n]."""
    challenger: Array
    """int64 [n]; -1 for a class that is none of the c."""
    champion: Array | None
    """The same; None where there is no champion."""

    def scores(self) -> tuple[Scores, Scores | None]:
        """Returns the challenger's and the champion's."""
        champion = None if self.champion is None else self._scores(self.champion)
        return self._scores(self.challenger), champion

    def right(self) -> Array:
        """Returns the number of nodes by champion (row) and challenger (column): [0] right, [1] wrong."""
        first = self.challenger if self.champion is None else self.champion
        wrong = 2 * (first != self.truth) + (self.challenger != self.truth)
        return np.bincount(wrong, minlength=4).reshape(2, 2)

    def sign_test(self) -> float:
        """Returns how likely so uneven a difference is between equal models (exact; McNemar 1947)."""
        from scipy.stats import binomtest

        only_champion, only_challenger = int(self.right()[0, 1]), int(self.right()[1, 0])
        differing = only_champion + only_challenger
        return float(binomtest(only_champion, differing).pvalue) if differing else 1.0

    def _scores(self, found: Array) -> Scores:
        num_classes = len(self.label_names)
        true = np.bincount(self.truth, minlength=num_classes)
        hit = np.bincount(self.truth[found == self.truth], minlength=num_classes)
        taken = np.bincount(found[found >= 0], minlength=num_classes)
        f1 = np.where(true > 0, 2 * hit / np.maximum(1, true + taken), np.nan)
        return Scores(accuracy=float(hit.sum() / len(self.truth)), macro_f1=float(np.nanmean(f1)), f1=f1)


@dataclass(frozen=True, slots=True)
class Verdict:
    """Who wins.

    Attributes:
        wins: whether it is the challenger.
        why: one line that says so.
    """

    wins: bool
    why: str


def judge(comparison: Comparison, criterion: Criterion) -> Verdict:
    """Returns who wins: without a champion any challenger that is good enough does."""
    challenger, champion = (
        None if scores is None else scores.of(criterion.metric) for scores in comparison.scores()
    )
    assert challenger is not None
    name = criterion.metric.replace("_", " ")
    if challenger < criterion.least_score - NEAR:
        return Verdict(False, f"the challenger's {name} {challenger:.4f} is below {criterion.least_score:g}")
    if champion is None:
        return Verdict(True, f"there is no champion yet; the challenger's {name} is {challenger:.4f}")
    gain = challenger - champion
    wins = gain > NEAR and gain >= criterion.margin - NEAR
    told = f"the challenger's {name} {challenger:.4f} is {gain:+.4f} to the champion's {champion:.4f}"
    needed = f"at least {criterion.margin:+g}" if criterion.margin else "more"
    return Verdict(wins, told if wins else f"{told}; {needed} is needed")


def in_classes(found: Array, of_model: Sequence[str], wanted: Sequence[str]) -> Array:
    """Returns classes by other numbers: those that they have in another list of names.

    Args:
        found: int64 [n], numbers in `of_model`.
        of_model: names of the model's classes.
        wanted: names whose numbers are wanted.

    Returns:
        int64 [n]; -1 where the name is not among them.
    """
    numbers = {name: number for number, name in enumerate(wanted)}
    theirs: Array = np.array([numbers.get(name, -1) for name in of_model], dtype=np.int64)[found]
    return theirs
