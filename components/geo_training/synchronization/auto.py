"""Gradients in each step while links are quick, then steps of one's own: as the root's controller plans.

What is measured is the computing of a step, and the links: how long something very small takes to the root
and back, and how much longer it takes as the number of bytes grows. Probes are as large as it needs for their
bytes to show, at most the model; they travel as they are, by the way that changes take, of each site alone.

Where the probes of all sites say that gradients take next to no time, the first steps exchange them, and go
on with it for as long as the root answers so. Elsewhere sites do not meet until three steps have been taken,
as nothing is known of their length before. After each round all workers go on by the root's answer, so that
all are at the same step whenever they meet. Between rounds the workers of a site average their weights.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from ..checkpoints.state import State
from ..scheduling.controller import EXPIRES, Measured
from ..spec import check
from ..wire.units import DELTA, FLOAT_BYTES, OWN, PLAN, SITE, TREE
from ..workers.plane import Flight, Layout, Plane
from .base import Replica
from .ending import Ask
from .gradients_first import GradientsFirst
from .local_steps import LocalSteps, Steps
from .planning import LAYOUT, ByTimesOfAll, measured_to, rung_from

PROBE = "probe"
"""Role of the rounds that measure links."""
FIRST_PLAN = 3
"""Steps before the first plan; the first one sets up, and is not measured."""
PLAN_EVERY = 8
"""Most steps between two plans where sites meet after each step; else there is one with each round."""
SITE_STEPS = 10
"""Steps between two averages at a site."""
QUICK_S = 0.05
"""How long gradients may take, by the probes, to be exchanged in the first steps."""
PROBE_EVERY = EXPIRES - 1
"""Plans between two probes."""
CLEAR_S = 0.03
"""How much longer the bytes of a probe must take than something small, to say anything."""
FIRST_PROBE, PROBE_GROWTH = 2048, 8
"""Values of the first probe, and how many times as many the next one has."""
_TINY = Layout.of([("tiny", 1)])


class Planned(ByTimesOfAll):
    """See `GradientsPlan`.

    Args:
        gradients: whether gradients may be exchanged in the first steps.
        clock: seconds on a clock that never goes back.
    """

    in_step = True

    def __init__(self, *, gradients: bool = True, clock: Callable[[], float] = time.monotonic) -> None:
        self.exchanges_gradients = False
        self.now = clock
        self._gradients = gradients
        self._plans = self._last_plan = self._next = self._steps = self._exchanges = 0
        self._seconds_a_step = self._seconds_a_byte = self._latency_s = self._seconds_a_round = 0.0
        self._seconds_of_gradients = 0.0
        self._since: tuple[float, int] | None = None

    def begin(self, replica: Replica, plane: Plane) -> None:
        """See `Plan`; measures the links for the first time."""
        self._plane = plane
        self._num_values = replica.layout.count
        site, _, _ = plane.members.name.partition("/")
        self._scope = f"{OWN}{site}" if plane.members.scope == TREE else plane.members.scope
        others = [name for name in plane.members.workers if name.startswith(f"{site}/")]
        self._of_site = [Ask(DELTA, replica.layout, SITE)] if len(others) > 1 else []
        self._probed = min(FIRST_PROBE, max(1, self._num_values))
        while self._probe() < CLEAR_S and self._probed < self._num_values:
            self._probed = min(PROBE_GROWTH * self._probed, self._num_values)
        if self._gradients:
            own_s = self._latency_s + self._num_values * FLOAT_BYTES * self._seconds_a_byte
            self.exchanges_gradients = self._largest(own_s, plane.members.scope) <= QUICK_S

    def due(self, step: int, fragments: int) -> list[int]:
        """See `Plan`; all fragments at once."""
        if self._since is None:
            self._since = self.now(), step
        if not self._plans:
            if step < FIRST_PLAN:
                return []
            self._measure(step)
            self._follow(self._tell(), step)
            self._next = max(step, self._steps)
            self._since = self.now(), step
        if step < self._next:
            return []
        self._measure(step)
        return list(range(fragments))

    def site_due(self, step: int) -> bool:
        """See `Plan`."""
        since = step - (self._next - self._steps)
        return bool(self._plans and self._of_site) and since % SITE_STEPS == 0

    def exchanged(self, step: int, began: float) -> None:
        """See `GradientsPlan`; what the steps since the last plan took is told as their mean."""
        ended = self.now()
        self._seconds_of_gradients += ended - began
        if self._since is not None:
            self._exchanges += 1
            self._seconds_a_step += (began - self._since[0] - self._seconds_a_step) / self._exchanges
            self._seconds_a_round += (ended - began - self._seconds_a_round) / self._exchanges
        if step >= max(FIRST_PLAN, self._last_plan + min(PLAN_EVERY, self._last_plan)):
            self._follow(self._tell(), step)
            if not self.exchanges_gradients and self._plans > 1:  # the probes are old
                self._probe()
                self._follow(self._tell(), step)
            self._next, self._exchanges = step + self._steps, 0
        self._since = self.now(), step

    def asks(self) -> list[Ask]:
        """See `Plan`."""
        probes = [Ask(PROBE, layout, self._scope, "max") for layout in (_TINY, self._large)]
        return [Ask(PLAN, LAYOUT, reduction="max"), *probes, *self._of_site]

    @contextmanager
    def synchronising(self, step: int) -> Iterator[None]:
        """See `Plan`."""
        is_time = self._steps > 1 or step - self._last_plan >= PLAN_EVERY
        told = self._tell() if is_time else None
        began = self.now()
        yield
        self._seconds_a_round = self.now() - began
        if told is not None:
            self._follow(told, step)
            if self._plans % PROBE_EVERY == 0:
                self._probe()
        self._next = step + self._steps
        self._since = self.now(), step

    def state(self) -> State:
        """See `Plan`."""
        self._since = None  # else what a checkpoint takes counts as a step
        counts = {
            "plans": self._plans,
            "last_plan": self._last_plan,
            "next": self._next,
            "steps": self._steps,
            "exchanges_gradients": int(self.exchanges_gradients),
        }
        seconds = {"a_step": self._seconds_a_step, "of_gradients": self._seconds_of_gradients}
        return State(facts={**counts, "seconds": seconds})

    def load_state(self, state: State) -> None:
        """See `Plan`."""
        facts = state.facts
        self._plans, self._last_plan = facts["plans"], facts["last_plan"]
        self._next, self._steps = facts["next"], facts["steps"]
        self._seconds_a_step = facts["seconds"]["a_step"]
        self._seconds_of_gradients = facts["seconds"]["of_gradients"]
        self.exchanges_gradients = bool(facts["exchanges_gradients"])

    @property
    def _large(self) -> Layout:
        return Layout.of([("large", self._probed)])

    def _measure(self, step: int) -> None:
        assert self._since is not None  # set when a step was first asked about
        began, first = self._since
        if step > first:
            self._seconds_a_step = (self.now() - began) / (step - first)

    def _tell(self) -> Flight:
        measured = Measured(
            seconds_a_step=self._seconds_a_step,
            seconds_a_byte=self._seconds_a_byte,
            latency_s=self._latency_s,
            num_values=self._num_values,
            seconds_a_round=self._seconds_a_round,
            exchanges_gradients=self.exchanges_gradients,
            seconds_of_gradients=self._seconds_of_gradients,
        )
        self._seconds_a_byte = self._seconds_a_round = 0.0  # are told once
        return self._plane.max(PLAN, LAYOUT, measured_to(measured))

    def _follow(self, told: Flight, step: int) -> None:
        answer = told.wait()
        assert answer is not None  # our own numbers are in it
        rung = rung_from(answer)
        self._steps, self.exchanges_gradients, self._last_plan = rung.steps, rung.exchanges_gradients, step
        self._plans += 1

    def _probe(self) -> float:
        """Measures the site's links; returns how long the probe's bytes took, as all of the site say.

        The first round lets the site's workers begin together, the last one lets them agree.
        """
        self._timed(_TINY)
        self._latency_s = self._timed(_TINY)
        took_s = self._largest(max(self._timed(self._large) - self._latency_s, 1e-9), self._scope)
        self._seconds_a_byte = took_s / (FLOAT_BYTES * self._probed)
        return took_s

    def _timed(self, layout: Layout) -> float:
        began = self.now()
        self._plane.max(PROBE, layout, np.zeros(layout.count, np.float32), self._scope).wait()
        return self.now() - began

    def _largest(self, seconds: float, scope: str) -> float:
        largest = self._plane.max(PROBE, _TINY, np.full(1, seconds), scope).wait()
        assert largest is not None  # our own number is in it
        return float(largest[0])


@dataclass(frozen=True, kw_only=True, slots=True)
class Auto:
    """Averages gradients over all sites, or where links are slower weights, as often as these allow.

    Raises:
        InputError: a value that is not allowed; names the option, the value and what is.
    """

    max_steps: Steps = 64
    """Most steps between two rounds."""

    def __post_init__(self) -> None:
        """Checks the values."""
        check(self)

    def local_steps(self, fragments: int, *, gradients: bool = True) -> LocalSteps:
        """Returns the worker's end.

        Args:
            fragments: see `LocalSteps`.
            gradients: whether the first steps may exchange them.
        """
        return GradientsFirst(Planned(gradients=gradients), fragments)
