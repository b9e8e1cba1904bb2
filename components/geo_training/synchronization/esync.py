"""ESync: every site takes as many steps as fit into the time of the slowest (Li et al., *ESync*, 2020).

After each round the workers tell their measured seconds a step and seconds a round. The round that the
slowest site can make with `steps` steps lasts T = max(steps * c + m); site i then takes (T - m) / c_i steps,
at least one and at most `cap * steps`. m is the time of the transfer alone, the shortest round of any worker:
the last to come waits for nobody.
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


def steps_of_sites(seconds_a_step: Array, transfer_s: float, steps: int, cap: float) -> Array:
    """Returns how many steps each site takes until the next round.

    Args:
        seconds_a_step: [sites], of each site's slowest worker; 0 where nothing was measured.
        transfer_s: seconds of the transfer alone.
        steps: steps of the slowest site.
        cap: most steps of any, as a multiple of `steps`.

    Returns:
        int64 [sites].
    """
    slowest = seconds_a_step.max()
    if slowest <= 0:
        return np.full(len(seconds_a_step), steps)
    longest = steps * slowest + transfer_s
    fitting = np.floor((longest - transfer_s) / np.maximum(seconds_a_step, slowest / 1e6) + 1e-6)
    planned: Array = np.clip(fitting, 1, int(cap * steps)).astype(np.int64)
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
        self._next, self._planned_at = steps, 0

    def begin(self, replica: Replica, plane: Plane) -> None:  # noqa: ARG002
        """See `Plan`."""
        self._plane = plane
        self._layout = Layout.of([("times", 2 * plane.size)])
        self._sites = [worker.partition("/")[0] for worker in plane.members.workers]
        self._seconds_a_step = 0.0
        self._round_s = 0.0
        self._since = self._clock()

    def due(self, step: int, fragments: int) -> list[int]:
        """See `Plan`; all fragments at once."""
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
        left = self._clock()
        taken = step - self._planned_at
        self._seconds_a_step = _smooth(self._seconds_a_step, (left - self._since) / taken)
        flight = self._tell()
        yield
        self._plan(flight, step)
        self._since = self._clock()
        self._round_s = _smooth(self._round_s, self._since - left)

    def _tell(self) -> Flight:
        times = np.zeros(2 * self._plane.size)
        times[self._plane.index] = self._seconds_a_step
        times[self._plane.size + self._plane.index] = self._round_s
        return self._plane.sum(NUMBERS, self._layout, times)

    def _plan(self, flight: Flight, step: int) -> None:
        times = flight.wait()
        assert times is not None  # our own are in it
        seconds, rounds = times[: self._plane.size], times[self._plane.size :]
        names = sorted(set(self._sites))
        of_sites = np.array([max(seconds[i] for i, s in enumerate(self._sites) if s == n) for n in names])
        measured = rounds[rounds > 0]
        transfer_s = float(measured.min()) if measured.size else 0.0
        planned = steps_of_sites(of_sites, transfer_s, self._steps, self._cap)
        self._next = step + int(planned[names.index(self._sites[self._plane.index])])
        self._planned_at = step


def _smooth(mean: float, measured: float) -> float:
    return measured if mean == 0 else KEPT * mean + (1 - KEPT) * measured


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
