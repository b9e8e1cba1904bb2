"""NBSync: training goes on while the inter-site round is under way, and is corrected when its result comes.

A result is one round late exactly, and corrects by the difference between the mean change and one's own, so
that the steps taken meanwhile are kept; `damping` below 1 takes a share of it (as Streaming DiLoCo mixes late
fragments; Douillard et al., 2025). Of the family of overlapped local SGD (CoCoD-SGD; Shen et al., IJCAI
2019).
"""

from dataclasses import dataclass
from typing import Annotated

from ..spec import Interval, check
from .hfa import Every
from .local_steps import LocalSteps, Steps


@dataclass(frozen=True, kw_only=True, slots=True)
class NbSync:
    """Averages weights over all sites without waiting.

    Raises:
        InputError: a value that is not allowed; names the option, the value and what is.
    """

    steps: Steps = 20
    """Steps between two rounds; a round that takes longer is waited for."""
    damping: Annotated[float, Interval(low=0, high=1, with_low=False)] = 1.0
    """Share of the correction that is applied."""

    def __post_init__(self) -> None:
        """Checks the values."""
        check(self)

    def local_steps(self, fragments: int) -> LocalSteps:
        """Returns the worker's end."""
        return LocalSteps(Every(self.steps), fragments, self.damping)
