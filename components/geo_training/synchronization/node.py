"""What the nodes of the tree make of a round: who must be in it, and, at the root, what comes out of it."""

from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np

from ..messages import Array
from ..optimizers import OptimizerSpec, build
from ..reductions import Reduction
from ..rounds import All, Quorum, Rule
from ..spec import Interval, check
from ..units import DELTA, GRADIENT, OWN, RoundId, Unit
from .base import SERVED, WEIGHTS
from .served import ALL, Served
from .statistics import STATISTICS


@dataclass(frozen=True, kw_only=True, slots=True)
class QuorumOptions:
    """The root waits for some workers only, and for the others a little longer.

    Raises:
        InputError: a value that is not allowed; names the option, the value and what is.
    """

    workers: Annotated[int, Interval(low=1, high=1_000_000)] = 1
    """Workers that must be in a round; `all` of them is the rule without this one."""
    grace_s: Annotated[float, Interval(low=0, high=86400)] = 1.0
    """Seconds from the first contribution for others to come; a later one is in the next round."""

    def __post_init__(self) -> None:
        """Checks the values."""
        check(self)


class Node:
    """See `NodePolicy`; of a site's aggregator, and of the root where neither optimizer acts."""

    def rule(self, round_id: RoundId) -> Rule:  # noqa: ARG002
        """See `NodePolicy`."""
        return All()

    def settle(self, round_id: RoundId, reduction: Reduction, total: Array, weight: float) -> Array:  # noqa: ARG002
        """See `NodePolicy`."""
        return reduction.settle(total, weight)


class Root:
    """See `NodePolicy`; of the root.

    Args:
        quorum: who must be in a round that brings changes or gradients; None for all.
        outer: moves the anchor by mean changes; None by the mean itself.
        optimizer: moves the weights by mean gradients; None leaves that to the workers.
    """

    def __init__(
        self,
        quorum: QuorumOptions | None = None,
        outer: OptimizerSpec | None = None,
        optimizer: OptimizerSpec | None = None,
    ) -> None:
        self._quorum = quorum
        self._outer = None if outer is None else build(outer)
        self._served = None if optimizer is None else Served(optimizer)

    def rule(self, round_id: RoundId) -> Rule:
        """See `NodePolicy`."""
        if self._quorum is None or round_id.unit.role not in (DELTA, GRADIENT, STATISTICS):
            return All()
        return Quorum(self._quorum.workers, self._quorum.grace_s)

    def settle(self, round_id: RoundId, reduction: Reduction, total: Array, weight: float) -> Array:
        """See `NodePolicy`."""
        result, role, tensor = reduction.settle(total, weight), round_id.unit.role, _tensor(round_id.unit)
        if self._outer is not None and role == DELTA:
            # How far the rule moves does not depend on where from; from zero, rate 1 gives the mean itself.
            moved = np.zeros_like(result)
            self._outer.update(f"{tensor.key}[{tensor.offset}]", moved, -result)
            return moved
        if self._served is not None:
            if role == WEIGHTS:
                self._served.begin(tensor, result)
            if role == SERVED:
                return self._served.weights(tensor)
            if role == GRADIENT:
                return self._served.step(tensor, result if weight else None, _site(round_id))
        return result


def _site(round_id: RoundId) -> str:
    return round_id.scope.removeprefix(OWN) if round_id.scope.startswith(OWN) else ALL


def _tensor(unit: Unit) -> Unit:
    return replace(unit, key=unit.key.partition(" ")[2])
