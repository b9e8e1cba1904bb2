"""ESync: every site takes as many steps as fit into the time of the slowest (Li et al., *ESync*, 2020).

With each round the workers tell their measured seconds a step, c, and seconds until the root has their
change, m. The round that every site can make with `steps` steps lasts T = max(steps * c + m); site i then
takes (T - m_i) / c_i steps, at most `cap * steps`.

m is measured by a number that follows the change on the same way and is answered at once, without waiting for
other sites. A site's workers wait for one another, the last for nobody: theirs is the shortest of them. While
the root is busy with a result it answers late; so a longer time than before is believed by and by only.

The first round is planned while it goes on, from a quarter of the steps asked for, and without m. A worker's
very first step, and the first after it was resumed, sets up too, and is not measured.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from ..checkpoints.state import State
from ..spec import Interval, check
from ..wire.messages import Array
from ..wire.units import OWN, TREE
from ..workers.plane import Flight, Layout, Plane
from .base import Replica
from .ending import Ask
from .local_steps import LocalSteps, Steps
from .planning import ByTimesOfAll

NUMBERS, PROBE = "numbers", "probe"
KEPT = 0.5
"""Share of the mean so far in a new mean of measured times."""
GROWTH = 1.25
"""Most by which a transfer is believed to last longer than in the round before."""
TOLD_SHARE, TOLD_LEAST = 4, 3
"""The first round is planned after one of so many of the steps asked for, but after so many at least: enough
to measure, and long before the round is over."""


def steps_of_sites(seconds_a_step: Array, transfer_s: Array, steps: int, cap: float) -> Array:
    """Returns how many steps each site takes until the next round.

    Args:
        seconds_a_step: [sites], of each site's slowest worker; 0 where nothing was measured.
        transfer_s: [sites], seconds until the root has a site's change; 0 where nothing was measured.
        steps: steps of the slowest site.
        cap: most steps of any, as a multiple of `steps`.

    Returns:
        int64 [sites].
    """
    slowest = seconds_a_step.max()
    if slowest <= 0:
        return np.full(len(seconds_a_step), steps)
    longest = (steps * seconds_a_step + transfer_s).max()
    fitting = np.floor((longest - transfer_s) / np.maximum(seconds_a_step, slowest / 1e6) + 1e-6)
    planned: Array = np.clip(fitting, steps, int(cap * steps)).astype(np.int64)
    return planned


class Planned(ByTimesOfAll):
    """See `Plan`: as many steps as `steps_of_sites` says, planned anew after each round.

    Args:
        steps: steps of the slowest site.
        cap: most steps of any, as a multiple of `steps`.
        clock: seconds on a clock that never goes back.
    """

    in_step = False

    def __init__(self, steps: int, cap: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._steps, self._cap, self._clock = steps, cap, clock
        self._next = steps
        self._told_after: int | None = max(TOLD_LEAST, steps // TOLD_SHARE)
        self._first: Flight | None = None

    def begin(self, replica: Replica, plane: Plane) -> None:  # noqa: ARG002
        """See `Plan`."""
        self._plane = plane
        self._sites = [worker.partition("/")[0] for worker in plane.members.workers]
        times, probe = Layout.of([("times", 2 * plane.size)]), Layout.of([("", 1)])
        of_tree = plane.members.scope == TREE
        scope = f"{OWN}{self._sites[plane.index]}" if of_tree else plane.members.scope
        self._times, self._probe = Ask(NUMBERS, times, reduction="sum"), Ask(PROBE, probe, scope, "sum")
        self._seconds_a_step = self._transfer_s = 0.0
        self._since_step: int | None = None

    def due(self, step: int, fragments: int) -> list[int]:
        """See `Plan`; all fragments at once."""
        if self._since_step is None:
            self._measure_from(step)
        if self._told_after is not None and self._told_after < self._steps:
            self._plan_first(step)
        if step < self._next:
            return []
        self._measure(step)
        return list(range(fragments))

    def asks(self) -> list[Ask]:
        """See `Plan`."""
        return [self._times, self._probe]

    def state(self) -> State:
        """See `Plan`; a first round that is not planned by now is as long as asked for, at all workers."""
        if self._told_after is not None:
            self._leave_unplanned()
        self._since_step = None  # else what a checkpoint takes counts as a step
        measured = {"seconds_a_step": self._seconds_a_step, "transfer_s": self._transfer_s}
        return State(facts={"next": self._next, **measured})

    def load_state(self, state: State) -> None:
        """See `Plan`."""
        self._leave_unplanned()
        self._next = state.facts["next"]
        self._seconds_a_step, self._transfer_s = state.facts["seconds_a_step"], state.facts["transfer_s"]

    @contextmanager
    def synchronising(self, step: int) -> Iterator[None]:
        """See `Plan`."""
        probe = self._plane.sum(PROBE, self._probe.layout, np.zeros(1), self._probe.scope)
        told = self._tell()
        yield
        self._plan(told, step)
        probe.wait()
        self._transfer_s = min(probe.seconds, GROWTH * (self._transfer_s or probe.seconds))
        self._told_after = None
        self._measure_from(step)

    def _plan_first(self, step: int) -> None:
        """Plans the first round once all have told how long their first steps took; none waits for that."""
        if step == self._told_after:
            self._measure(step)
            self._first = self._tell()
            self._next = int(self._cap * self._steps)
            self._seconds_a_step = 0.0  # the mean of the whole round is over these steps too
        if self._first is not None and (self._first.landed or step >= self._next):
            self._plan(self._first, 0)
            self._first = self._told_after = None

    def _leave_unplanned(self) -> None:
        self._next = self._steps
        self._first = self._told_after = None

    def _measure_from(self, step: int) -> None:
        self._since, self._since_step = self._clock(), step

    def _measure(self, step: int) -> None:
        assert self._since_step is not None  # asked after each step
        if taken := step - self._since_step:
            self._seconds_a_step = _smooth(self._seconds_a_step, (self._clock() - self._since) / taken)

    def _tell(self) -> Flight:
        times = np.zeros(2 * self._plane.size)
        times[self._plane.index] = self._seconds_a_step
        times[self._plane.size + self._plane.index] = self._transfer_s
        return self._plane.sum(NUMBERS, self._times.layout, times)

    def _plan(self, told: Flight, step: int) -> None:
        times = told.wait()
        assert times is not None  # our own are in it
        names = sorted(set(self._sites))
        of_sites = [[i for i, site in enumerate(self._sites) if site == name] for name in names]
        seconds = np.array([max(times[workers]) for workers in of_sites])
        transfer_s = np.array([_shortest(times[self._plane.size :][workers]) for workers in of_sites])
        planned = steps_of_sites(seconds, transfer_s, self._steps, self._cap)
        self._next = step + int(planned[names.index(self._sites[self._plane.index])])


def _shortest(measured: Array) -> float:
    return float(min(measured[measured > 0], default=0.0))


def _smooth(mean: float, measured: float) -> float:
    return measured if mean == 0 else KEPT * mean + (1 - KEPT) * measured


@dataclass(frozen=True, kw_only=True, slots=True)
class ESync:
    """Averages weights over all sites; one of fast workers or a fast link takes more steps meanwhile.

    Raises:
        InputError: a value that is not allowed; names the option, the value and what is.
    """

    steps: Steps = 20
    """Steps of the slowest site between two rounds."""
    cap: Annotated[float, Interval(low=1, high=1000)] = 8.0
    """Most steps of any site, as a multiple of `steps`."""

    def __post_init__(self) -> None:
        """Checks the values."""
        check(self)

    def local_steps(self, fragments: int) -> LocalSteps:
        """Returns the worker's end."""
        return LocalSteps(Planned(self.steps, self.cap), fragments)
