"""Keeps what a round takes on the slowest link within the time that its steps take: a pure state machine.

A round over n values takes latency + n * b / B seconds at b bytes a value and B bytes a second; its H steps
take H * c. Of a ladder of ways to need less (`ladder`), the controller takes the first rung on which

    latency + n * b / B <= 0.5 * H * c

and goes back to an earlier one only where that one fits with room to spare, so that it does not waver. No
rung helps against latency but steps: so many as make it half of that are taken on every rung. It knows
neither networks nor clocks: measurements are arguments, and one place decides for all.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil

from ..checkpoints.state import State
from .ladder import Rung, check_ladder

SHARE = 0.5
"""Share of the steps' time that a round may take."""
RELAXED = 0.75
"""Share of `SHARE` within which an earlier rung must fit to be taken again."""
NEW = 0.7
"""Share of the newest measurement in the mean of them."""
EXPIRES = 5
"""Plans for which a link's measurement counts."""
OWN_S = 0.01
"""Latency that is not the links': what processes need themselves to hand something on and back."""
GROWTH = 2
"""Most by which the steps between two rounds grow from one plan to the next."""
FIRST_STEPS = 4
"""Most steps of the first plan: early on, sites part quickly."""


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
        self._seconds_a_step = self._seconds_a_byte = self._latency_s = 0.0
        self._age = 0

    def plan(self, measured: Measured) -> Rung:
        """Returns how to go on, the rung that is stood on, perhaps with fewer steps for a while.

        Args:
            measured: since the last plan.
        """
        self._note(measured)
        if self._seconds_a_step > 0 and self._seconds_a_byte > 0:
            self._at = self._found(measured.num_values)
        rung = self._ladder[self._at]
        most = GROWTH * self._steps if self._steps else FIRST_STEPS
        self._steps = min(self._steps_on(rung), most)
        return replace(rung, steps=self._steps)

    def state(self) -> State:
        """See `Stateful`."""
        means = [self._seconds_a_step, self._seconds_a_byte, self._latency_s]
        return State(facts={"at": self._at, "steps": self._steps, "means": means, "age": self._age})

    def load_state(self, state: State) -> None:
        """See `Stateful`."""
        facts = state.facts
        self._at, self._steps, self._age = facts["at"], facts["steps"], facts["age"]
        self._seconds_a_step, self._seconds_a_byte, self._latency_s = facts["means"]

    def _note(self, measured: Measured) -> None:
        self._seconds_a_step = _smooth(self._seconds_a_step, measured.seconds_a_step)
        if measured.seconds_a_byte > 0:
            self._seconds_a_byte = _smooth(self._seconds_a_byte, measured.seconds_a_byte)
            self._latency_s = _smooth(self._latency_s, measured.latency_s)
            self._age = 0
            return
        self._age += 1
        if self._age >= EXPIRES:  # what it was long ago is no reason to move
            self._seconds_a_byte = self._latency_s = 0.0

    def _found(self, num_values: int) -> int:
        shares = [self._share(rung, num_values) for rung in self._ladder]
        last = len(shares) - 1
        if shares[self._at] > SHARE:
            return next((at for at, share in enumerate(shares) if at > self._at and share <= SHARE), last)
        return next(at for at, share in enumerate(shares) if at == self._at or share <= SHARE * RELAXED)

    def _share(self, rung: Rung, num_values: int) -> float:
        """Returns what a round takes, as a share of its steps' time."""
        round_s = self._far_s + num_values * rung.bytes_a_value * self._seconds_a_byte
        return round_s / (self._steps_on(rung) * self._seconds_a_step)

    def _steps_on(self, rung: Rung) -> int:
        """Returns the steps that are taken on a rung: its own, or more because of latency."""
        if not self._far_s or not self._seconds_a_step:
            return rung.steps
        needed = ceil(self._far_s / (SHARE / 2 * self._seconds_a_step))
        return min(max(rung.steps, needed), self._ladder[-1].steps)

    @property
    def _far_s(self) -> float:
        return max(0.0, self._latency_s - OWN_S)


def _smooth(mean: float, measured: float) -> float:
    if measured <= 0:
        return mean
    return measured if mean == 0 else (1 - NEW) * mean + NEW * measured
