"""Keeps what a round takes on the slowest link within the time that its steps take: a pure state machine.

A round over n values takes own + latency + n * b / B seconds at b bytes a value and B bytes a second; its H
steps take H * c. Of a ladder of ways to need less (`ladder`), the controller takes the first rung on which

    own + latency + n * b / B <= share * H * c

where the share is `FREE_SHARE` as long as what is given up costs next to nothing (bits, some steps), and
`SHARE` further on; it goes back to an earlier rung only where that one fits with room to spare, so that it
does not waver. No rung helps against what processes need themselves, nor against latency, but steps: so many
as make it a small part are taken on every rung. Workers that have exchanged gradients from the start go on
with it while that takes at most `GRADIENT_SHARE` of a step's computing, or has taken next to nothing in all;
then never again. It knows neither networks nor clocks: measurements are arguments, and one place decides for
all.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil

from ..checkpoints.state import State
from .ladder import Rung, check_ladder

SHARE = 1.0
"""Share of the steps' time that a round may take."""
FREE_SHARE = 0.1
"""Share that it may take on rungs before the last free one: less is to be had for next to nothing."""
RELAXED = 0.75
"""Share of either within which an earlier rung must fit to be taken again."""
NEW = 0.7
"""Share of the newest measurement in the mean of them."""
EXPIRES = 5
"""Plans for which a link's measurement counts."""
GROWTH = 2
"""Most by which the steps between two rounds grow from one plan to the next."""
FIRST_STEPS = 20
"""Most steps of the first plan: early on, sites part quickly."""
GRADIENT_SHARE = 0.5
"""Share of a step's computing that the exchange of its gradients may take."""
GRADIENT_S = 0.1
"""Seconds that gradients may take in all, whatever their share, which a short training does not feel."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Measured:
    """What the workers measured, each number that of the slowest; 0 where it was not measured."""

    seconds_a_step: float
    seconds_a_byte: float
    """Until a byte has gone up and another one has come down."""
    latency_s: float
    """Until something very small has gone up and come down."""
    num_values: int
    """Of the model."""
    seconds_a_round: float = 0.0
    """What the last round took the worker that waited least."""
    exchanges_gradients: bool = False
    """Whether the rounds were of gradients, one a step."""
    seconds_of_gradients: float = 0.0
    """What these took in all the worker that waited least."""


class Controller:
    """Plans rounds from measurements.

    Args:
        ladder: the rungs, each of which needs less of a link than the one before.
    """

    def __init__(self, ladder: Sequence[Rung]) -> None:
        check_ladder(ladder)
        self._ladder = ladder
        self._at = 0
        self._steps = 0
        self._last_free = max((at for at, rung in enumerate(ladder) if rung.is_free), default=0)
        self._seconds_a_step = self._seconds_a_byte = self._latency_s = self._own_s = 0.0
        self._age = 0

    def plan(self, measured: Measured) -> Rung:
        """Returns how to go on, the rung that is stood on, perhaps with fewer steps for a while.

        Args:
            measured: since the last plan.
        """
        self._note(measured)
        if measured.exchanges_gradients and (
            measured.seconds_of_gradients <= GRADIENT_S
            or measured.seconds_a_round <= GRADIENT_SHARE * self._seconds_a_step
        ):
            return replace(self._ladder[0], exchanges_gradients=True)
        if self._seconds_a_step > 0 and self._seconds_a_byte > 0:
            self._at = self._found(measured.num_values)
        rung = self._ladder[self._at]
        most = GROWTH * self._steps if self._steps else FIRST_STEPS
        self._steps = min(self._steps_on(rung), most)
        return replace(rung, steps=self._steps)

    def state(self) -> State:
        """See `Stateful`."""
        means = [self._seconds_a_step, self._seconds_a_byte, self._latency_s, self._own_s]
        return State(facts={"at": self._at, "steps": self._steps, "means": means, "age": self._age})

    def load_state(self, state: State) -> None:
        """See `Stateful`."""
        facts = state.facts
        self._at, self._steps, self._age = facts["at"], facts["steps"], facts["age"]
        self._seconds_a_step, self._seconds_a_byte, self._latency_s, self._own_s = facts["means"]

    def _note(self, measured: Measured) -> None:
        self._seconds_a_step = _smooth(self._seconds_a_step, measured.seconds_a_step)
        if measured.seconds_a_byte > 0:
            self._seconds_a_byte = _smooth(self._seconds_a_byte, measured.seconds_a_byte)
            self._latency_s = _smooth(self._latency_s, measured.latency_s)
            self._age = 0
        else:
            self._age += 1
            if self._age >= EXPIRES:  # what it was long ago is no reason to move
                self._seconds_a_byte = self._latency_s = 0.0
        if measured.seconds_a_round > 0 and self._seconds_a_byte > 0:
            by_links_s = self._latency_s + self._transfer_s(self._ladder[self._at], measured.num_values)
            self._own_s = _smooth(self._own_s, max(measured.seconds_a_round - by_links_s, 0.0))

    def _found(self, num_values: int) -> int:
        free = self._last_free
        fits = [self._share(rung, num_values) / _allowed(at < free) for at, rung in enumerate(self._ladder)]
        if fits[self._at] > 1:
            return next((at for at, share in enumerate(fits) if at > self._at and share <= 1), len(fits) - 1)
        return next(at for at, share in enumerate(fits) if at == self._at or share <= RELAXED)

    def _share(self, rung: Rung, num_values: int) -> float:
        """Returns what a round takes, as a share of its steps' time."""
        round_s = self._fixed_s + self._transfer_s(rung, num_values)
        return round_s / (self._steps_on(rung) * self._seconds_a_step)

    def _steps_on(self, rung: Rung) -> int:
        """Returns the steps that are taken on a rung: its own, or more because of what no rung shortens."""
        if not self._fixed_s or not self._seconds_a_step:
            return rung.steps
        free = min(
            self._ladder[self._last_free].steps, ceil(self._fixed_s / (FREE_SHARE / 2 * self._seconds_a_step))
        )
        needed = ceil(self._fixed_s / (SHARE / 2 * self._seconds_a_step))
        return min(max(rung.steps, free, needed), self._ladder[-1].steps)

    def _transfer_s(self, rung: Rung, num_values: int) -> float:
        return num_values * rung.bytes_a_value * self._seconds_a_byte

    @property
    def _fixed_s(self) -> float:
        return self._own_s + self._latency_s


def _allowed(is_free: bool) -> float:
    return FREE_SHARE if is_free else SHARE


def _smooth(mean: float, measured: float) -> float:
    if measured <= 0:
        return mean
    return measured if mean == 0 else (1 - NEW) * mean + NEW * measured
