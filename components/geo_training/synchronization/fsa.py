"""Full synchronisation at both levels (FSA, HiPS of GeoMX): every worker of every site in every step.

Each step's gradient is the mean over all samples of all workers, so training equals one process on the joined
batch.
"""

from ..messages import Array
from ..reductions import Reduction
from ..rounds import All, Rule
from ..units import RoundId
from .base import Average


class FullAtNode:
    """Waits for all, and hands out the reduction's own result."""

    def rule(self) -> Rule:
        """See `NodePolicy`."""
        return All()

    def settle(
        self,
        round_id: RoundId,  # noqa: ARG002
        reduction: Reduction,
        total: Array,
        weight: float,
    ) -> Array:
        """See `NodePolicy`."""
        return reduction.settle(total, weight)


class FullAtWorker:
    """Averages each gradient; every worker steps its own replica of the optimizer with the same numbers."""

    def on_gradient(self, gradient: Array | None, num_samples: int, average: Average) -> Array | None:
        """See `WorkerPolicy`."""
        return average(gradient, num_samples)
