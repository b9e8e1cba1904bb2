"""A worker whose weights are the root's, where the optimizer acts: gradients travel up, changes down."""

import numpy as np

from ..messages import Array
from ..plane import Plane
from ..units import GRADIENT, OWN
from .base import SERVED, Replica, Update
from .ending import Ask, all_have_ended, stay_until_all_are_done
from .statistics import average_statistics


class ServedWorker:
    """See `WorkerPolicy`: the local optimizer does not act.

    Args:
        own_rounds: whether each site has rounds of its own with the root, and waits for no other.
    """

    def __init__(self, *, own_rounds: bool) -> None:
        self._own_rounds = own_rounds

    def begin(self, replica: Replica, plane: Plane, update: Update) -> None:  # noqa: ARG002
        """See `WorkerPolicy`."""
        self._replica, self._plane, self._samples = replica, plane, 0
        site = plane.members.name.partition("/")[0]
        self._scope = f"{OWN}{site}" if self._own_rounds else plane.members.scope

    def step(self, gradient: Array | None, num_samples: int) -> None:
        """See `WorkerPolicy`."""
        self._samples += num_samples
        flight = self._plane.mean(GRADIENT, self._replica.layout, gradient, num_samples, self._scope)
        change = flight.wait()
        if change is not None:
            self._move(change)
        else:
            self._ended(has_ended=False)

    def agreed(self) -> None:
        """See `WorkerPolicy`; with own rounds they are those of the worker's site."""

    def finish(self) -> None:
        """See `WorkerPolicy`: stays while others step, then takes the root's weights exactly."""
        ask = Ask(GRADIENT, self._replica.layout, self._scope)
        stay_until_all_are_done(
            self._plane,
            {ask: None},
            lambda _ask, change, _weight: self._move(change),
            ended=lambda: self._ended(has_ended=True),
        )
        nothing = np.zeros(self._replica.layout.count, np.float32) if self._plane.index == 0 else None
        last = self._plane.sum(SERVED, self._replica.layout, nothing).wait()
        assert last is not None  # the first worker asks
        self._replica.set_weights(last)
        average_statistics(self._replica, self._plane, self._samples)

    def _ended(self, *, has_ended: bool) -> bool:
        return all_have_ended(self._plane, self._scope, has_ended=has_ended)

    def _move(self, change: Array) -> None:
        self._replica.set_weights(self._replica.weights() + change)
