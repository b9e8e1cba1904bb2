"""NBSync: training goes on while the inter-site round is under way, and is corrected when its result comes.

A result is one round late exactly, and corrects by the difference between the mean change and one's own, so
that the steps taken meanwhile are kept; `damping` below 1 takes a share of it (as Streaming DiLoCo mixes late
fragments; Douillard et al., 2025). Of the family of overlapped local SGD (CoCoD-SGD; Shen et al., IJCAI
2019).
"""

from dataclasses import dataclass
from typing import ClassVar

from ..options import SYNCHRONIZATION, Number, Options, Whole, option
from .hfa import Every
from .local_steps import LocalSteps


@dataclass(frozen=True, kw_only=True, slots=True)
class NbSync(Options):
    """Averages weights over all sites without waiting."""

    what: ClassVar[str] = SYNCHRONIZATION
    name: ClassVar[str] = "nbsync"

    steps: int = option(20, Whole(1, 1_000_000))
    """Steps between two rounds; a round that takes longer is waited for."""
    damping: float = option(1.0, Number(0, 1, without_low=True))
    """Share of the correction that is applied."""

    def local_steps(self, fragments: int) -> LocalSteps:
        """Returns the worker's end."""
        return LocalSteps(Every(self.steps), fragments, self.damping)
