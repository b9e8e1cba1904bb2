"""What the nodes of the tree make of a round: who must be in it, and, at the root, what comes out of it."""

import threading
from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np

from ..checkpoints.state import State
from ..nodes.reductions import Reduction
from ..nodes.rules import All, Quorum, Rule
from ..optimizers import OptimizerSpec, build
from ..scheduling.controller import Controller
from ..spec import Interval, check
from ..wire.messages import Array
from ..wire.units import DELTA, GRADIENT, OWN, PLAN, WEIGHTS, RoundId, Unit, whole_scope
from .base import PACE, POSITION, SERVED
from .followed import Followed
from .planning import Planner
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

    def state(self) -> State:
        """See `NodePolicy`; nothing is kept."""
        return State()

    def load_state(self, state: State) -> None:
        """See `NodePolicy`."""


class Root:
    """See `NodePolicy`; of the root.

    Args:
        quorum: who must be in a round that brings changes or gradients; None for all.
        outer: moves the anchor by mean changes; None by the mean itself.
        optimizer: moves the weights by mean gradients; None leaves that to the workers.
        controller: plans rounds from what workers measured; None where nobody asks.
        follows: whether the weights that changes lead to are kept, for workers that start again.

    Attributes:
        rounds: rounds of a tensor behind the weights that it began with.
    """

    def __init__(
        self,
        quorum: QuorumOptions | None = None,
        outer: OptimizerSpec | None = None,
        optimizer: OptimizerSpec | None = None,
        controller: Controller | None = None,
        *,
        follows: bool = False,
    ) -> None:
        self.rounds = 0
        self._pace: list[float] | None = None
        self._quorum = quorum
        self._outer = None if outer is None else build(outer)
        self._served = None if optimizer is None else Served(optimizer)
        self._followed = Followed() if follows and optimizer is None else None
        self._planner = None if controller is None else Planner(controller)
        self._moving = threading.Lock()

    def rule(self, round_id: RoundId) -> Rule:
        """See `NodePolicy`."""
        of_all = round_id.unit.role in (DELTA, GRADIENT, STATISTICS) and not round_id.scope.startswith(OWN)
        if self._quorum is None or not of_all:
            return All()
        return Quorum(self._quorum.workers, self._quorum.grace_s)

    def settle(self, round_id: RoundId, reduction: Reduction, total: Array, weight: float) -> Array:
        """See `NodePolicy`."""
        result, role, tensor = reduction.settle(total, weight), round_id.unit.role, _tensor(round_id.unit)
        if role == POSITION:
            return np.full_like(result, self.rounds)
        if role == PACE:
            self._pace = self._pace or result.tolist()
            return np.asarray(self._pace, result.dtype)
        if role == DELTA:
            return self._moved(tensor, result)
        if role == PLAN and self._planner is not None:
            return self._planner.answer(result)
        holder = self._served or self._followed
        if role == WEIGHTS and holder is not None:
            return holder.begin(tensor, result)
        if self._served is not None and role == SERVED:
            return self._served.weights(tensor)
        if self._served is not None and role == GRADIENT:
            return self._served.step(tensor, result if weight else None, _site(round_id))
        return result

    def state(self) -> State:
        """See `NodePolicy`."""
        parts = {}
        with self._moving:
            if self._outer is not None:
                parts["outer"] = State(self._outer.state())
            if self._served is not None:
                parts["served"] = self._served.state()
            if self._followed is not None:
                parts["followed"] = self._followed.state()
            if self._pace is not None:
                parts["pace"] = State(facts={"pace": self._pace})
        if self._planner is not None:
            parts["controller"] = self._planner.controller.state()
        return State.of(parts)

    def load_state(self, state: State) -> None:
        """See `NodePolicy`."""
        self._pace = state.part("pace").facts.get("pace")
        if self._outer is not None:
            self._outer.load_state(state.part("outer").arrays)
        if self._served is not None:
            self._served.load_state(state.part("served"))
        if self._followed is not None:
            self._followed.load_state(state.part("followed"))
        if self._planner is not None:
            self._planner.controller.load_state(state.part("controller"))

    def begin_again(self, rounds: int) -> None:
        """Notes that all workers start again, from the loaded weights.

        Args:
            rounds: rounds of a tensor behind these weights.
        """
        self.rounds = rounds
        if self._served is not None:
            self._served.begin_again()

    def _moved(self, tensor: Unit, mean: Array) -> Array:
        change = mean
        with self._moving:
            if self._outer is not None:
                # How far the rule moves does not depend on where from; from zero, rate 1 is the mean itself.
                change = np.zeros_like(mean)
                self._outer.update(tensor.place, change, -mean)
            if self._followed is not None:
                self._followed.add(tensor, change)
        return change


def _site(round_id: RoundId) -> str:
    scope = whole_scope(round_id.scope)
    return scope.removeprefix(OWN) if scope.startswith(OWN) else ALL


def _tensor(unit: Unit) -> Unit:
    return replace(unit, key=unit.key.partition(" ")[2])
