"""How many steps ESync plans, from times that a clock of the test gives."""

import numpy as np
import pytest
from geokfp.components.geo_training.plane import Members
from geokfp.components.geo_training.synchronization.esync import Planned, steps_of_sites
from support.clock import FakeClock


@pytest.mark.parametrize(
    ("seconds", "steps", "cap", "expected"),
    [
        ([1.0, 1.0], 10, 8, [10, 10]),
        ([1.0, 4.0], 10, 8, [40, 10]),
        ([1.0, 40.0], 10, 8, [80, 10]),
        ([0.0, 0.0], 10, 8, [10, 10]),
        ([0.0, 1.0], 10, 8, [80, 10]),
        ([3.0, 2.0], 1, 8, [1, 1]),
    ],
)
def test_a_site_fills_the_time_of_the_slowest(seconds, steps, cap, expected):
    assert steps_of_sites(np.array(seconds), steps, cap).tolist() == expected


class Told:
    """See `Flight`."""

    def __init__(self, plane, times):
        self._plane, self._times = plane, times

    @property
    def landed(self):
        return self._plane.landed

    def wait(self):
        return self._times


class TwoSites:
    """See `Plane`; the other site tells always the same time.

    Attributes:
        landed: whether what was told has come.
        told: what this worker told so far.
    """

    def __init__(self, other_s, *, landed=True):
        self.members = Members(workers=("a/trainer-0", "b/trainer-0"), name="a/trainer-0")
        self.size, self.index = 2, 0
        self.landed, self.told = landed, []
        self._other_s = other_s

    def sum(self, role, layout, values):
        assert (role, layout.count) == ("numbers", 2)
        self.told.append(values[0])
        return Told(self, np.add(values, [0, self._other_s]))


def rounds_after(plan, clock, seconds, taken=0):
    """Takes steps that last so many seconds each; returns after which of them a round was due."""
    due = []
    for step, lasts in enumerate(seconds, taken + 1):
        clock.advance(lasts)
        if plan.due(step, 1):
            due.append(step)
            with plan.synchronising(step):
                clock.advance(1000)  # waiting for the others is no step
    return due


def planned(steps, plane):
    clock = FakeClock()
    plan = Planned(steps, 8, clock)
    plan.begin(None, plane)
    return plan, clock


def test_the_first_round_is_planned_from_its_first_steps_but_the_very_first():
    plane = TwoSites(4.0)
    plan, clock = planned(10, plane)
    assert rounds_after(plan, clock, [100.0, *[1.0] * 79]) == [40, 80]
    assert plane.told == [1, 1, 1]


def test_a_round_is_planned_from_the_steps_before_it():
    plane = TwoSites(4.0)
    plan, clock = planned(10, plane)
    assert rounds_after(plan, clock, [*[1.0] * 40, *[3.0] * 40, *[1.0] * 20]) == [40, 80, 100]
    assert plane.told == [1, 1, 2, 1.5]


def test_the_slowest_takes_the_steps_that_the_user_asked_for():
    plan, clock = planned(10, TwoSites(1.0))
    assert rounds_after(plan, clock, [4.0] * 30) == [10, 20, 30]


def test_who_has_taken_these_steps_goes_on_until_told_of_the_others():
    plane = TwoSites(4.0, landed=False)
    plan, clock = planned(10, plane)
    assert rounds_after(plan, clock, [1.0] * 30) == []
    plane.landed = True
    assert rounds_after(plan, clock, [1.0] * 20, taken=30) == [40]


def test_who_is_not_told_goes_as_far_as_the_cap():
    plan, clock = planned(10, TwoSites(4.0, landed=False))
    assert rounds_after(plan, clock, [1.0] * 100) == [80]


def test_a_round_too_short_to_be_planned_while_it_goes_on_is_as_long_for_all():
    plane = TwoSites(4.0)
    plan, clock = planned(2, plane)
    assert rounds_after(plan, clock, [1.0] * 10) == [2, 10]
    assert plane.told == [1, 1]
