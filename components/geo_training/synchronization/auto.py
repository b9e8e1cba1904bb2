"""Steps of one's own until a round, as many as the root's controller plans, by what workers measure.

What is measured is the computing of a step, and the links: how long something very small takes to the root
and back, and how much longer it takes as the number of bytes grows. Probes are as large as it needs for their
bytes to show, at most the model; they travel as they are, by the way that changes take, of each site alone.

Until three steps have been taken sites do not meet: nothing is known of their length before. After each round
all workers go on by the root's answer, so that all are at the same step whenever they meet.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from ..checkpoints.state import State
from ..scheduling.controller import EXPIRES, Measured
from ..spec import check
from ..wire.units import FLOAT_BYTES, OWN, PLAN, TREE
from ..workers.plane import Flight, Layout, Plane
from .base import Replica
from .ending import Ask
from .local_steps import LocalSteps, Steps
from .planning import LAYOUT, ByTimesOfAll, measured_to, steps_from

PROBE = "probe"
"""Role of the rounds that measure links."""
FIRST_PLAN = 3
"""Steps before the first plan; the first one sets up, and is not measured."""
PLAN_EVERY = 8
"""Steps between two plans where sites meet after each step; else there is one with each round."""
PROBE_EVERY = EXPIRES - 1
"""Plans between two probes."""
CLEAR_S = 0.03
"""How much longer the bytes of a probe must take than something small, to say anything."""
FIRST_PROBE, PROBE_GROWTH = 2048, 8
"""Values of the first probe, and how many times as many the next one has."""
_TINY = Layout.of([("tiny", 1)])


class Planned(ByTimesOfAll):
    """See `Plan`.

    Args:
        clock: seconds on a clock that never goes back.
    """

    in_step = True

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._plans = self._last_plan = self._next = self._steps = 0
        self._seconds_a_step = self._seconds_a_byte = self._latency_s = self._seconds_a_round = 0.0
        self._since: tuple[float, int] | None = None

    def begin(self, replica: Replica, plane: Plane) -> None:
        """See `Plan`; measures the links for the first time."""
        self._plane = plane
        self._num_values = replica.layout.count
        site = plane.members.name.partition("/")[0]
        self._scope = f"{OWN}{site}" if plane.members.scope == TREE else plane.members.scope
        self._probed = min(FIRST_PROBE, max(1, self._num_values))
        while self._probe() < CLEAR_S and self._probed < self._num_values:
            self._probed = min(PROBE_GROWTH * self._probed, self._num_values)

    def due(self, step: int, fragments: int) -> list[int]:
        """See `Plan`; all fragments at once."""
        if self._since is None:
            self._since = self._clock(), step
        if not self._plans:
            if step < FIRST_PLAN:
                return []
            self._measure(step)
            self._follow(self._tell(), step)
            self._next = max(step, self._steps)
            self._since = self._clock(), step
        if step < self._next:
            return []
        self._measure(step)
        return list(range(fragments))

    def asks(self) -> list[Ask]:
        """See `Plan`."""
        probes = [Ask(PROBE, layout, self._scope, "max") for layout in (_TINY, self._large)]
        return [Ask(PLAN, LAYOUT, reduction="max"), *probes]

    @contextmanager
    def synchronising(self, step: int) -> Iterator[None]:
        """See `Plan`."""
        is_time = self._steps > 1 or step - self._last_plan >= PLAN_EVERY
        told = self._tell() if is_time else None
        began = self._clock()
        yield
        self._seconds_a_round = self._clock() - began
        if told is not None:
            self._follow(told, step)
            if self._plans % PROBE_EVERY == 0:
                self._probe()
        self._next = step + self._steps
        self._since = self._clock(), step

    def state(self) -> State:
        """See `Plan`."""
        self._since = None  # else what a checkpoint takes counts as a step
        counts = {
            "plans": self._plans,
            "last_plan": self._last_plan,
            "next": self._next,
            "steps": self._steps,
        }
        return State(facts={**counts, "seconds_a_step": self._seconds_a_step})

    def load_state(self, state: State) -> None:
        """See `Plan`."""
        facts = state.facts
        self._plans, self._last_plan = facts["plans"], facts["last_plan"]
        self._next, self._steps = facts["next"], facts["steps"]
        self._seconds_a_step = facts["seconds_a_step"]

    @property
    def _large(self) -> Layout:
        return Layout.of([("large", self._probed)])

    def _measure(self, step: int) -> None:
        assert self._since is not None  # set when a step was first asked about
        began, first = self._since
        if step > first:
            self._seconds_a_step = (self._clock() - began) / (step - first)

    def _tell(self) -> Flight:
        measured = Measured(
            seconds_a_step=self._seconds_a_step,
            seconds_a_byte=self._seconds_a_byte,
            latency_s=self._latency_s,
            num_values=self._num_values,
            seconds_a_round=self._seconds_a_round,
        )
        self._seconds_a_byte = self._seconds_a_round = 0.0  # are told once
        return self._plane.max(PLAN, LAYOUT, measured_to(measured))

    def _follow(self, told: Flight, step: int) -> None:
        answer = told.wait()
        assert answer is not None  # our own numbers are in it
        self._steps, self._last_plan = steps_from(answer), step
        self._plans += 1

    def _probe(self) -> float:
        """Measures the site's links; returns how long the probe's bytes took, as all of the site say.

        The first round lets the site's workers begin together, the last one lets them agree.
        """
        self._timed(_TINY)
        self._latency_s = self._timed(_TINY)
        took_s = max(self._timed(self._large) - self._latency_s, 1e-9)
        agreed = self._plane.max(PROBE, _TINY, np.full(1, took_s), self._scope).wait()
        assert agreed is not None  # our own number is in it
        self._seconds_a_byte = float(agreed[0]) / (FLOAT_BYTES * self._probed)
        return float(agreed[0])

    def _timed(self, layout: Layout) -> float:
        began = self._clock()
        self._plane.max(PROBE, layout, np.zeros(layout.count, np.float32), self._scope).wait()
        return self._clock() - began


@dataclass(frozen=True, kw_only=True, slots=True)
class Auto:
    """Averages weights over all sites, as often as the links allow without holding up the steps.

    Raises:
        InputError: a value that is not allowed; names the option, the value and what is.
    """

    max_steps: Steps = 64
    """Most steps between two rounds."""

    def __post_init__(self) -> None:
        """Checks the values."""
        check(self)

    def local_steps(self, fragments: int) -> LocalSteps:
        """Returns the worker's end."""
        return LocalSteps(Planned(), fragments)
