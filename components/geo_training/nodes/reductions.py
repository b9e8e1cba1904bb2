"""How the contributions of a round become one: named rules, the same at every node of the tree.

A rule merges contributions in the order of their senders' names, so that the result does not depend on
arrival. Knows nothing of networks.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..wire.messages import Array


@dataclass(frozen=True, slots=True)
class Reduction:
    """A rule.

    Attributes:
        merge: one or more one-dimensional arrays, and the unit's count, to one; called at every node. Merging
            merged contributions must give what merging all at once gives.
        settle: the merged values and the summed weight to the result; called once, where the round ends.
        keeps_count: the result has as many values as the unit.
    """

    merge: Callable[[Sequence[Array], int], Array]
    settle: Callable[[Array, float], Array] = lambda total, _weight: total
    keeps_count: bool = True


def _sum(values: Sequence[Array], _count: int) -> Array:
    if len(values) == 1:
        return values[0]
    total = values[0] + values[1]
    for value in values[2:]:
        total += value
    return total


def _max(values: Sequence[Array], _count: int) -> Array:
    largest: Array = np.maximum.reduce(list(values))
    return largest


def _k_smallest(values: Sequence[Array], count: int) -> Array:
    smallest: Array = np.sort(np.concatenate(list(values)))[:count]
    return smallest


def _union(values: Sequence[Array], _count: int) -> Array:
    united: Array = np.unique(np.concatenate(list(values)))
    return united


def _divide(total: Array, weight: float) -> Array:
    return total / total.dtype.type(weight) if weight else np.zeros_like(total)


REDUCTIONS: Mapping[str, Reduction] = {
    "sum": Reduction(_sum),
    "mean": Reduction(_sum, _divide),
    "max": Reduction(_max),
    "k_smallest": Reduction(_k_smallest, keeps_count=False),
    "union": Reduction(_union, keeps_count=False),
}
"""`mean` is the sum divided by the summed weights; `k_smallest` keeps as many as the unit counts; `union`
keeps each value once, sorted."""
