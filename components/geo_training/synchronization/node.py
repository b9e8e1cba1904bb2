"""What the nodes of the tree make of a round: who must be in it, and, at the root, what comes out of it."""

from dataclasses import dataclass, replace
from typing import Annotated, Protocol

from ..messages import Array
from ..reductions import Reduction
from ..rounds import All, Quorum, Rule
from ..spec import Interval, check
from ..units import OWN, TREE, RoundId, Unit
from .fsa import GRADIENT
from .local_steps import DELTA
from .outer import Nesterov
from .statistics import STATISTICS

WEIGHTS = "weights"
"""Role of the first weights, which the first worker gives to all."""


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


class RootOptimizer(Protocol):
    """Moves weights by gradients, at the root; `optimizers` has them."""

    def update(self, key: str, weights: Array, gradient: Array, site: str | None) -> None:
        """Changes `weights`, float32 [n], in place by the mean gradient, float32 [n]."""


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
        outer: Nesterov | None = None,
        optimizer: RootOptimizer | None = None,
    ) -> None:
        self._quorum = quorum
        self._outer = outer
        self._optimizer = optimizer
        self._weights: dict[Unit, Array] = {}
        self._first: dict[Unit, Array] = {}
        self._sites_have: dict[tuple[str, Unit], Array] = {}

    def rule(self, round_id: RoundId) -> Rule:
        """See `NodePolicy`."""
        if self._quorum is None or _role(round_id) not in (DELTA, GRADIENT, STATISTICS):
            return All()
        return Quorum(self._quorum.workers, self._quorum.grace_s)

    def settle(self, round_id: RoundId, reduction: Reduction, total: Array, weight: float) -> Array:
        """See `NodePolicy`."""
        result, role = reduction.settle(total, weight), _role(round_id)
        if self._outer is not None and role == DELTA:
            return self._outer.move(round_id.unit, result)
        if self._optimizer is not None:
            tensor = _tensor(round_id.unit)
            if role == WEIGHTS:
                self._weights[tensor], self._first[tensor] = result.copy(), result
            if role == GRADIENT:
                return self._step(self._optimizer, round_id, tensor, result if weight else None)
        return result

    def _step(
        self, optimizer: RootOptimizer, round_id: RoundId, tensor: Unit, gradient: Array | None
    ) -> Array:
        site = round_id.scope.removeprefix(OWN) if round_id.scope != TREE else ""
        weights = self._weights[tensor]
        before = self._sites_have.get((site, tensor), self._first[tensor])
        if gradient is not None:
            optimizer.update(f"{tensor.key}[{tensor.offset}]", weights, gradient, site or None)
        self._sites_have[site, tensor] = weights.copy()
        return weights - before


def _role(round_id: RoundId) -> str:
    return round_id.unit.key.partition(" ")[0]


def _tensor(unit: Unit) -> Unit:
    return replace(unit, key=unit.key.partition(" ")[2])
