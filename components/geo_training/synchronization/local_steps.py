"""Steps of one's own between two synchronisations: what HFA, ESync, NBSync and DiLoCo share.

Every worker trains a replica with its own optimizer. From time to time the change since the weights that all
last agreed on (the anchor) is averaged over all workers, weighted by samples; the root may let an outer
optimizer act on the mean; and the result is added to the anchor, on each worker alike. When that is due, a
plan says; what becomes of the steps taken meanwhile, `damping`.
"""

from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Annotated, Protocol, TypeAlias

import numpy as np

from ..checkpoints.state import State, Stateful
from ..spec import Interval
from ..wire.messages import Array
from ..wire.units import DELTA, SITE
from ..workers.plane import Flight, Layout, Plane
from .base import Gradient, Replica, Update
from .ending import Ask, stay_until_all_are_done
from .statistics import STATISTICS, average_statistics, begin_statistics, end_statistics

Steps: TypeAlias = Annotated[int, Interval(low=1, high=1_000_000)]
"""How many steps lie between two synchronisations, as an option."""


class Plan(Stateful, Protocol):
    """Tells a worker when to synchronise; `Every` is one.

    Attributes:
        in_step: whether all workers synchronise after the same step.
    """

    in_step: bool

    def begin(self, replica: Replica, plane: Plane) -> None:
        """Called once."""

    def enter(self, replica: Replica, plane: Plane, rounds: int) -> int:
        """Called after `begin` where the others have begun before; returns the steps before so many rounds.

        Raises:
            UsageError: who has not been there from the start has no plan.
        """

    def due(self, step: int, fragments: int) -> list[int]:
        """Returns which of so many fragments are due over all sites after the `step`-th step; asked once."""

    def site_due(self, step: int) -> bool:
        """Tells whether the workers of the site are to be averaged, where not all fragments are due."""

    def asks(self) -> list[Ask]:
        """Returns the rounds that the plan has beside those of the weights."""

    def synchronising(self, step: int) -> AbstractContextManager[None]:
        """Entered when all that is due was sent, left when it has come; for plans that measure."""


@dataclass(slots=True, eq=False)
class _Fragment:
    layout: Layout
    samples: int = 0
    flight: Flight | None = None
    statistics: Flight | None = None
    sent: Array = field(default_factory=lambda: np.zeros(0, np.float32))

    @property
    def piece(self) -> slice:
        """Where it lies in the flat vector."""
        return slice(self.layout.start, self.layout.stop)


class LocalSteps:
    """See `WorkerPolicy`.

    Args:
        plan: when to synchronise.
        num_fragments: parts of the model that are synchronised at different times (Douillard et al.,
            *Streaming DiLoCo*, 2025).
        damping: None waits for each result; a number trains on while the result is under way, and then
            corrects the weights by this share of (mean change - own change), so that the steps taken
            meanwhile are kept.
    """

    def __init__(self, plan: Plan, num_fragments: int = 1, damping: float | None = None) -> None:
        self._plan = plan
        self._num_fragments = num_fragments
        self._damping = damping

    def begin(self, replica: Replica, plane: Plane, update: Update) -> None:  # noqa: ARG002
        """See `WorkerPolicy`."""
        self._replica, self._plane = replica, plane
        self._anchor = replica.weights()
        self._fragments = [_Fragment(layout) for layout in replica.layout.fragments(self._num_fragments)]
        self._samples = self._site_samples = 0
        self._step = 0
        self._plan.begin(replica, plane)
        if plane.first_round is not None:
            plane.skip(DELTA, replica.layout, plane.members.scope)
            plane.skip(STATISTICS, replica.statistics_layout, plane.members.scope)
            self._step = self._plan.enter(replica, plane, plane.first_round)

    def step(self, gradient: Gradient | None, num_samples: int) -> None:
        """See `WorkerPolicy`."""
        if gradient is not None:
            gradient.apply(num_samples)
        self._step += 1
        self._samples += num_samples
        self._site_samples += num_samples
        for fragment in self._fragments:
            fragment.samples += num_samples
            if fragment.flight is not None and fragment.flight.landed:
                self._land(fragment)
        due = [self._fragments[index] for index in self._plan.due(self._step, len(self._fragments))]
        for fragment in due:
            self._leave(fragment)
        if due and self._damping is None:
            with self._plan.synchronising(self._step):
                for fragment in due:
                    self._land(fragment)
        if len(due) == len(self._fragments):
            self._site_samples = 0
        elif self._plan.site_due(self._step):
            self._average_site()

    def agreed(self) -> Array | None:
        """See `WorkerPolicy`."""
        return self._anchor

    def finish(self) -> None:
        """See `WorkerPolicy`: brings the last change, then stays until nobody brings any.

        What is measured is averaged once more: the last round may have been without workers that had ended.
        """
        self._gather()

    def state(self) -> State:
        """See `WorkerPolicy`; workers at unequal steps come to the same weights first, as at the end."""
        if self._plan.in_step:
            for fragment in self._fragments:
                self._land(fragment)
        else:
            self._gather()
        facts = {
            "step": self._step,
            "samples": self._samples,
            "site_samples": self._site_samples,
            "of_fragments": [fragment.samples for fragment in self._fragments],
        }
        own = State({"anchor": self._anchor.copy()}, facts)
        return State.of({"own": own, "plan": self._plan.state()})

    def load_state(self, state: State) -> None:
        """See `WorkerPolicy`."""
        own = state.part("own")
        self._anchor = own.arrays["anchor"].copy()
        self._step, self._samples = own.facts["step"], own.facts["samples"]
        self._site_samples = own.facts["site_samples"]
        for fragment, samples in zip(self._fragments, own.facts["of_fragments"], strict=True):
            fragment.samples = samples
        self._plan.load_state(state.part("plan"))

    def _gather(self) -> None:
        measured = self._replica.statistics()
        for fragment in self._fragments:
            self._leave(fragment)
        pieces = {Ask(DELTA, fragment.layout): fragment.piece for fragment in self._fragments}
        asks = {Ask(DELTA, fragment.layout): fragment.flight for fragment in self._fragments}
        if (statistics := self._fragments[0].statistics) is not None:
            asks[Ask(STATISTICS, self._replica.statistics_layout)] = statistics
        asks |= {ask: None for ask in self._other_asks()}

        def take(ask: Ask, values: Array, _weight: float) -> None:
            if ask in pieces:
                self._anchor[pieces[ask]] += values

        stay_until_all_are_done(self._plane, asks, take, self._has_ended)
        for fragment in self._fragments:
            fragment.flight = fragment.statistics = None
        self._end(measured)

    def _end(self, measured: Array) -> None:
        """Takes the anchor over, and the mean of what each worker has measured."""
        self._replica.set_weights(self._anchor)
        self._replica.set_statistics(measured)
        average_statistics(self._replica, self._plane, self._samples)

    def _other_asks(self) -> list[Ask]:
        return self._plan.asks()

    def _has_ended(self, ask: Ask) -> bool:  # noqa: ARG002
        return True  # whose round it is brings changes in every step

    def _leave(self, fragment: _Fragment) -> None:
        """Sends the change since the anchor, once the one before has come."""
        self._land(fragment)
        fragment.sent = self._replica.weights()[fragment.piece] - self._anchor[fragment.piece]
        weight = fragment.samples
        change = fragment.sent * np.float32(weight)
        fragment.flight = self._plane.mean(DELTA, fragment.layout, change, weight)
        if fragment is self._fragments[0]:
            fragment.statistics = begin_statistics(self._replica, self._plane, self._samples)
        fragment.samples = 0

    def _land(self, fragment: _Fragment) -> None:
        """Waits for the result of a fragment under way, if it is, and takes it over."""
        if fragment.flight is None:
            return
        update = fragment.flight.wait()
        assert update is not None  # our own values are in it
        fragment.flight = None
        self._anchor[fragment.piece] += update
        weights = self._replica.weights()
        if self._damping is None:
            weights[fragment.piece] = self._anchor[fragment.piece]
        else:
            weights[fragment.piece] += np.float32(self._damping) * (update - fragment.sent)
        self._replica.set_weights(weights)
        end_statistics(self._replica, fragment.statistics)
        fragment.statistics = None

    def _average_site(self) -> None:
        """Averages the workers of the site; the sites do not meet."""
        change = (self._replica.weights() - self._anchor) * np.float32(self._site_samples)
        flight = self._plane.mean(DELTA, self._replica.layout, change, self._site_samples, SITE)
        mean = flight.wait()
        if mean is not None and flight.weight:
            self._replica.set_weights(self._anchor + mean)
        self._site_samples = 0
