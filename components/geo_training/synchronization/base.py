"""What a synchronisation policy decides, at a node and at a worker. Knows no network and no framework."""

from collections.abc import Callable
from typing import Protocol, TypeAlias

from ..checkpoints.state import Stateful
from ..nodes.reductions import Reduction
from ..nodes.rules import Rule
from ..wire.messages import Array
from ..wire.units import RoundId
from ..workers.plane import Layout, Plane

BUFFERS = "buffers"
"""Role of the first statistics, which come with them."""
SERVED = "served"
"""Role of the root's weights, where its optimizer acts, for which all workers ask."""

POSITION = "position"
"""Role of the number of rounds behind the root's weights, which the first worker asks for."""
PACE = "pace"
"""Role of the seconds that a byte takes; the root answers with what it took the first time."""
CHECKPOINT = "checkpoint"
"""Role of the number of a checkpoint, for which all workers wait: each node keeps its state, then answers."""

Update: TypeAlias = Callable[[Array], None]
"""Lets the framework's optimizer take a step with a flat mean gradient, float32 [layout.count]."""


class Replica(Protocol):
    """A worker's model as a policy sees it: flat vectors, in the same order on each worker.

    Attributes:
        layout: what `weights` is made of.
        statistics_layout: what `statistics` is made of.
    """

    layout: Layout
    statistics_layout: Layout

    def weights(self) -> Array:
        """Returns a copy of the parameters, float32 [layout.count]."""

    def set_weights(self, weights: Array) -> None:
        """Replaces the parameters."""

    def statistics(self) -> Array:
        """Returns a copy of what is measured rather than learned, as BatchNorm's means and variances."""

    def set_statistics(self, statistics: Array) -> None:
        """Replaces them."""


class Gradient(Protocol):
    """A worker's gradient in one step, as its framework has it, of the loss summed over its samples."""

    def flat(self) -> Array:
        """Returns it, float32 [layout.count]."""

    def apply(self, num_samples: int) -> None:
        """Lets the framework's optimizer take a step with the mean over the worker's own samples."""


class WorkerPolicy(Stateful, Protocol):
    """What a worker asks; one object a worker and training. All workers must call it in the same way.

    `state` is called after a step, by all workers after the same one, or where they take unequal numbers
    after any; it waits for what is under way. `load_state` is called after `begin`; the replica's weights and
    the optimizer's state are no part of it.
    """

    def begin(self, replica: Replica, plane: Plane, update: Update) -> None:
        """Called once, when all workers have the same weights.

        Args:
            replica: the worker's model.
            plane: what joins it to the others.
            update: the local optimizer.
        """

    def step(self, gradient: Gradient | None, num_samples: int) -> None:
        """Takes one step; called once a step.

        Args:
            gradient: the worker's; None with 0 samples.
            num_samples: samples behind it.
        """

    def agreed(self) -> Array | None:
        """Returns the weights that all workers last agreed on; None when those of the replica always are."""

    def finish(self) -> None:
        """Called once, after the worker's last step, which may be later on other workers.

        All workers have the same weights afterwards.
        """


class NodePolicy(Stateful, Protocol):
    """What an aggregator asks; one object a node."""

    def rule(self, round_id: RoundId) -> Rule:
        """Returns which contributions finish a round here; asked whenever one may be finished."""

    def settle(self, round_id: RoundId, reduction: Reduction, total: Array, weight: float) -> Array:
        """Returns what all who took part get; called once a round, only where the round's route ends.

        Args:
            round_id: the round.
            reduction: the rule that merged `total`.
            total: the merged contributions; may be read-only.
            weight: the samples behind them.
        """
