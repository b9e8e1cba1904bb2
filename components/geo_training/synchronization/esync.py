"""ESync: every site takes as many steps as fit into the time of the slowest (Li et al., *ESync*, 2020).

Workers tell their measured seconds a step, c. A round lasts as long as the slowest site takes for `steps`
steps; site i then takes steps * max(c) / c_i steps, at most `cap * steps`. The transfer, which is the same
model for all, adds to each of these times alike. The first round is planned while it goes on, from its first
steps but the very first, which also sets up; each later one from the steps before it.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from ..messages import Array
from ..plane import Flight, Layout, Plane
from ..spec import Interval, check
from .base import Replica
from .ending import Ask
from .local_steps import LocalSteps, Steps

NUMBERS = "numbers"
KEPT = 0.5
"""Share of the mean so far in a new mean of measured times."""
WARM_UP = 1
"""Steps at the start that are not measured."""
TOLD_AFTER = 3
"""Least steps after which the first round is planned, where it has more of them."""
TOLD_SHARE = 4
"""They are one of so many of the steps asked for: enough to measure, and long before the round is over."""


def steps_of_sites(seconds_a_step: Array, steps: int, cap: float) -> Array:
    """Returns how many steps each site takes until the next round.

    Args:
        seconds_a_step: [sites], of each site's slowest worker; 0 where nothing was measured.
        steps: steps of the slowest site.
        cap: most steps of any, as a multiple of `steps`.

    Returns:
        int64 [sites].
    """
    slowest = seconds_a_step.max()
    if slowest <= 0:
        return np.full(len(seconds_a_step), steps)
    fitting = np.floor(steps * slowest / np.maximum(seconds_a_step, slowest / 1e6) + 1e-6)
    planned: Array = np.minimum(fitting, int(cap * steps)).astype(np.int64)
    return planned


class Planned:
    """See `Plan`: as many steps as `steps_of_sites` says, planned anew after each round.

    Args:
        steps: steps of the slowest site.
        cap: most steps of any, as a multiple of `steps`.
        clock: seconds on a clock that never goes back.
    """

    def __init__(self, steps: int, cap: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._steps, self._cap, self._clock = steps, cap, clock
        self._next = steps
        self._told_after = max(TOLD_AFTER, steps // TOLD_SHARE)
        self._first: Flight | None = None

    def begin(self, replica: Replica, plane: Plane) -> None:  # noqa: ARG002
        """See `Plan`."""
        self._plane = plane
        self._layout = Layout.of([("times", plane.size)])
        self._sites = [worker.partition("/")[0] for worker in plane.members.workers]
        self._seconds_a_step = 0.0
        self._measure_from(0)

    def due(self, step: int, fragments: int) -> list[int]:
        """See `Plan`; all fragments at once."""
        self._plan_first(step)
        return list(range(fragments)) if step >= self._next else []

    def site_due(self, step: int) -> bool:  # noqa: ARG002
        """See `Plan`."""
        return False

    def asks(self) -> list[Ask]:
        """See `Plan`."""
        return [Ask(NUMBERS, self._layout, reduction="sum")]

    @contextmanager
    def synchronising(self, step: int) -> Iterator[None]:
        """See `Plan`."""
        self._measure(step)
        flight = self._tell()
        yield
        self._plan(flight, step)
        self._measure_from(step)

    def _plan_first(self, step: int) -> None:
        """Plans the first round once all have told how long their first steps took; none waits for that."""
        if self._told_after >= self._steps:
            return
        if step == WARM_UP:
            self._measure_from(step)
        elif step == self._told_after:
            self._measure(step)
            self._first = self._tell()
            self._next = int(self._cap * self._steps)
            self._seconds_a_step = 0.0  # the round's own mean is over these steps too
        if self._first is not None and (self._first.landed or step >= self._next):
            self._plan(self._first, 0)
            self._first = None

    def _measure_from(self, step: int) -> None:
        self._since, self._since_step = self._clock(), step

    def _measure(self, step: int) -> None:
        measured = (self._clock() - self._since) / (step - self._since_step)
        mean = self._seconds_a_step
        self._seconds_a_step = measured if mean == 0 else KEPT * mean + (1 - KEPT) * measured

    def _tell(self) -> Flight:
        times = np.zeros(self._plane.size)
        times[self._plane.index] = self._seconds_a_step
        return self._plane.sum(NUMBERS, self._layout, times)

    def _plan(self, flight: Flight, step: int) -> None:
        """Plans the round that begins after the `step`-th step."""
        seconds = flight.wait()
        assert seconds is not None  # our own are in it
        names = sorted(set(self._sites))
        of_sites = np.array([max(seconds[i] for i, s in enumerate(self._sites) if s == n) for n in names])
        planned = steps_of_sites(of_sites, self._steps, self._cap)
        self._next = step + int(planned[names.index(self._sites[self._plane.index])])


@dataclass(frozen=True, kw_only=True, slots=True)
class ESync:
    """Averages weights over all sites; a fast site takes more steps meanwhile.

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
