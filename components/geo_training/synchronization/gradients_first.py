"""Gradients of all workers in each step for as long as the root plans so, then steps of one's own.

Where links are quick this is full synchronisation, and equals one process on the joined batch. Once a round
takes long beside a step, optimizers part, and so there is no way back (post-local SGD; Lin et al., ICLR 2020,
where the moment is given).
"""

from typing import Protocol

from ..checkpoints.state import State
from ..wire.messages import Array
from ..wire.units import DELTA, GRADIENT
from ..workers.plane import Flight, Plane
from .base import Gradient, Replica, Update
from .ending import Ask, stay_until_all_are_done, step_without_samples
from .fsa import FullAtWorker
from .local_steps import LocalSteps, Plan
from .statistics import STATISTICS


class GradientsPlan(Plan, Protocol):
    """A plan that begins with gradients.

    Attributes:
        exchanges_gradients: whether all workers exchange gradients in each step; once they do not, they never
            do again.
    """

    exchanges_gradients: bool

    def exchanged(self, step: int, began: float) -> None:
        """Called when the gradients of a step have been exchanged, by each worker alike.

        Args:
            step: its number, from 1.
            began: when the worker had its own, by `now`.
        """

    def now(self) -> float:
        """Returns the plan's time in seconds."""


class GradientsFirst(LocalSteps):
    """See `WorkerPolicy`.

    Args:
        plan: when to synchronise.
        num_fragments: see `LocalSteps`.
    """

    def __init__(self, plan: GradientsPlan, num_fragments: int = 1) -> None:
        super().__init__(plan, num_fragments)
        self._gradients_plan = plan
        self._full = FullAtWorker()

    def begin(self, replica: Replica, plane: Plane, update: Update) -> None:
        """See `WorkerPolicy`."""
        super().begin(replica, plane, update)
        self._full.begin(replica, plane, update)
        self._update = update
        self._began_together = self._gradients_plan.exchanges_gradients

    def step(self, gradient: Gradient | None, num_samples: int) -> None:
        """See `WorkerPolicy`."""
        if not self._gradients_plan.exchanges_gradients:
            super().step(gradient, num_samples)
            return
        own = None if gradient is None else gradient.flat()  # which may have had to be waited for
        began = self._gradients_plan.now()
        self._full.exchange(own, num_samples)
        self._step += 1
        self._samples += num_samples
        self._gradients_plan.exchanged(self._step, began)
        if not self._gradients_plan.exchanges_gradients:
            self._anchor = self._replica.weights()

    def agreed(self) -> Array | None:
        """See `WorkerPolicy`."""
        return None if self._gradients_plan.exchanges_gradients else self._anchor

    def load_state(self, state: State) -> None:
        """See `WorkerPolicy`."""
        super().load_state(state)
        self._began_together = self._began_together or self._gradients_plan.exchanges_gradients

    def _gather(self) -> None:
        if not self._gradients_plan.exchanges_gradients:
            super()._gather()
            return
        pieces = {Ask(DELTA, fragment.layout): fragment.piece for fragment in self._fragments}
        asks: dict[Ask, Flight | None] = dict.fromkeys((*self._other_asks(), *pieces))
        if self._replica.statistics_layout.count:
            asks[Ask(STATISTICS, self._replica.statistics_layout)] = None
        anchor: Array | None = None

        def take(ask: Ask, values: Array, _weight: float) -> None:
            nonlocal anchor
            if ask.role == GRADIENT:
                self._update(values)
            elif ask in pieces:  # by workers that have gone on alone, after the last gradient
                anchor = self._replica.weights() if anchor is None else anchor
                anchor[pieces[ask]] += values

        measured = self._replica.statistics()
        stay_until_all_are_done(self._plane, asks, take, self._has_ended)
        self._anchor = self._replica.weights() if anchor is None else anchor
        self._end(measured)

    def _other_asks(self) -> list[Ask]:
        gradients = [Ask(GRADIENT, self._replica.layout)] if self._began_together else []
        return [*gradients, *super()._other_asks()]

    def _has_ended(self, ask: Ask) -> bool:
        # A gradient may be of no samples, so all are asked, who have gone on alone too.
        return ask.role != GRADIENT or step_without_samples(
            self._plane, self._replica, self._update, has_ended=True
        )
