"""What a synchronisation policy decides, at a node and at a worker. Knows nothing of networks."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from ..messages import Array
from ..reductions import Reduction
from ..rounds import Rule
from ..units import RoundId

Average: TypeAlias = Callable[[Array | None, int], Array | None]
"""Averages values over all workers, weighted by samples: (values of the samples summed, samples) to the mean.

None brings no values (with 0 samples); None comes back when nobody brought any.
"""


class NodePolicy(Protocol):
    """What an aggregator asks; one object a node."""

    def rule(self) -> Rule:
        """Returns which contributions finish a round here; asked once, when the node starts."""

    def settle(self, round_id: RoundId, reduction: Reduction, total: Array, weight: float) -> Array:
        """Returns what all who took part get; called once a round, only where the round's route ends.

        Args:
            round_id: the round.
            reduction: the rule that merged `total`.
            total: the merged contributions; may be read-only.
            weight: the samples behind them.
        """


class WorkerPolicy(Protocol):
    """What a worker asks; one object a worker."""

    def on_gradient(self, gradient: Array | None, num_samples: int, average: Average) -> Array | None:
        """Returns the gradient to step with; called once a step, by every worker in every step.

        Args:
            gradient: gradient of the summed loss of the worker's samples, flat; None with 0 samples.
            num_samples: samples behind it.
            average: exchanges with the other workers.
        """


@dataclass(frozen=True, slots=True)
class Synchronization:
    """Factories of the two ends of a policy."""

    node: Callable[[], NodePolicy]
    worker: Callable[[], WorkerPolicy]
