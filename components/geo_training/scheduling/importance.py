"""Which blocks of a unit are sent on the reliable channel, and which on what channel beside it (DGT).

A unit is cut into blocks. The contribution of a block is C <- alpha * C + (1 - alpha) * mean |block|, zero at
first. Of n blocks in falling contribution the first round(p * n) are important and travel reliably; the rest
is split evenly, in this order, over channels 1 to c, on which blocks may be lost or late. The share p is
fixed, or falls with the training: p_t = max(p_0 * m_t / m_0, p_min), never above p_0, for a measure m of how
far the training is: here the norm of what is pushed.

Source: Zhou et al., *DGT: A contribution-aware differential gradient transmission mechanism for distributed
machine learning*, Future Generation Computer Systems 2021. Knows nothing of networks.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ..wire.messages import Array


@dataclass(frozen=True, slots=True)
class Cut:
    """How `count` values are cut into blocks of `block` values; the last may be shorter."""

    count: int
    block: int

    def __post_init__(self) -> None:
        if self.count < 1 or self.block < 1:
            raise ValueError(f"{self.count} values in blocks of {self.block}: 1 or more of both are needed")

    @property
    def num_blocks(self) -> int:
        """Blocks in all."""
        return -(-self.count // self.block)

    def span(self, number: int) -> slice:
        """Returns where a block lies in the values."""
        return slice(number * self.block, min(self.count, (number + 1) * self.block))

    def sizes(self, numbers: Sequence[int]) -> list[int]:
        """Returns the values of some blocks."""
        return [self.span(number).stop - self.span(number).start for number in numbers]


def mean_magnitudes(cut: Cut, values: Array) -> Array:
    """Returns the mean magnitude of each block, float64 [cut.num_blocks].

    Args:
        cut: the blocks.
        values: [cut.count].
    """
    starts = np.arange(0, cut.count, cut.block)
    totals = np.add.reduceat(np.abs(values), starts, dtype=np.float64)
    means: Array = totals / np.diff(starts, append=cut.count)
    return means


@dataclass(frozen=True, slots=True)
class Split:
    """Who travels where.

    Attributes:
        important: blocks of the reliable channel, in falling contribution.
        channels: those of each channel beside it, the most important channel first.
    """

    important: tuple[int, ...]
    channels: tuple[tuple[int, ...], ...]


def split(contributions: Array, present: Array, fraction: float, num_channels: int) -> Split:
    """Ranks blocks.

    Args:
        contributions: of each block, [blocks]; of equal ones the first comes first.
        present: which blocks are sent at all, bool [blocks].
        fraction: share of those that is important, by number.
        num_channels: channels beside the reliable one, 1 or more.
    """
    order = np.argsort(-contributions, kind="stable")
    ranked = [int(number) for number in order[present[order]]]
    num_important = int(fraction * len(ranked) + 0.5)
    rest = ranked[num_important:]
    edges = [channel * len(rest) // num_channels for channel in range(num_channels + 1)]
    channels = tuple(tuple(rest[start:stop]) for start, stop in pairwise(edges))
    return Split(tuple(ranked[:num_important]), channels)


@dataclass(frozen=True, kw_only=True, slots=True)
class Share:
    """How large a share of the blocks is important; one for all units of a link."""

    fraction: float
    """p_0."""
    min_fraction: float
    """p_min, where that is less than p_0."""
    adaptive: bool
    """Whether it falls with the measure."""

    def of(self, measure: float, first: float) -> float:
        """Returns p_t for a measure whose first value was `first`; p_0 where that says nothing."""
        if not self.adaptive or not first > 0 or not np.isfinite(measure):
            return self.fraction
        return min(self.fraction, max(self.fraction * measure / first, self.min_fraction))


class Ranking:
    """The contributions of one unit's blocks on one link.

    Args:
        cut: the blocks.
        alpha: weight of what was, 0 to below 1.
    """

    def __init__(self, cut: Cut, alpha: float) -> None:
        self.contributions: Array = np.zeros(cut.num_blocks)
        self._cut = cut
        self._alpha = alpha

    def update(self, values: Array) -> Array:
        """Takes a round's values, [cut.count]; returns which blocks hold any that is not zero."""
        means = mean_magnitudes(self._cut, values)
        self.contributions = self._alpha * self.contributions + (1 - self._alpha) * means
        present: Array = means != 0
        return present
