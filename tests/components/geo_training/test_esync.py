"""ESync's plan: of measured seconds a step and of transfers, held by an oracle and over a tree."""

import threading
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
from geokfp.components.geo_training.synchronization.esync import PROBE, Planned, steps_of_sites
from geokfp.components.geo_training.wire.messages import Answer
from geokfp.components.geo_training.wire.units import OWN
from geokfp.components.geo_training.workers.plane import Members
from support.clock import FakeClock
from support.geo_tree import topology
from support.memory_transport import MemoryTransport
from support.vector_training import one_model, train

WORKERS = ("oslo/trainer-0", "oslo/trainer-1", "rome/trainer-0")


@pytest.mark.parametrize(
    ("seconds", "transfer_s", "steps", "cap", "expected"),
    [
        ([1.0, 1.0], [0.5, 0.5], 10, 8, [10, 10]),
        ([1.0, 4.0], [0.5, 0.5], 10, 8, [40, 10]),
        ([1.0, 4.0], [20.5, 0.5], 10, 8, [20, 10]),
        ([1.0, 1.0], [0.5, 5.5], 10, 8, [15, 10]),
        ([1.0, 2.0], [30.0, 0.0], 10, 8, [10, 20]),
        ([1.0, 40.0], [0.5, 0.5], 10, 8, [80, 10]),
        ([1.0, 40.0], [0.5, 0.5], 10, 1, [10, 10]),
        ([0.0, 0.0], [0.5, 9.0], 10, 8, [10, 10]),
        ([0.0, 1.0], [0.5, 0.5], 10, 8, [80, 10]),
        ([3.0, 2.0], [0.5, 0.5], 1, 8, [1, 1]),
    ],
)
def test_every_site_fills_the_time_of_the_slowest(seconds, transfer_s, steps, cap, expected):
    assert steps_of_sites(np.array(seconds), np.array(transfer_s), steps, cap).tolist() == expected


@pytest.mark.parametrize(
    ("seconds", "transfers"), [*product([(1, 3, 5), (2, 2, 9)], [(0, 4, 1), (30, 1, 1)])]
)
def test_no_site_could_take_another_step_and_none_takes_fewer_than_asked(seconds, transfers):
    planned = steps_of_sites(np.array(seconds, float), np.array(transfers, float), 6, 1000)
    ends = [k * c + m for k, c, m in zip(planned, seconds, transfers, strict=True)]
    assert min(planned) == 6
    for end, c in zip(ends, seconds, strict=True):
        assert end <= max(6 * c + m for c, m in zip(seconds, transfers, strict=True)) < end + c


class ScriptedPlane:
    """The plane of one worker; what the others tell, and how long the probe takes, is set by the test."""

    def __init__(self, name):
        self.members = Members(workers=WORKERS, name=name)
        self.index, self.size = WORKERS.index(name), len(WORKERS)
        self.others, self.probe_s, self.scopes = np.zeros(2 * self.size), 0.0, []
        self.told, self.landed = [], True

    def sum(self, role, layout, values, scope=None):
        if role == PROBE:
            self.scopes.append(scope)
            return SimpleNamespace(wait=lambda: values, seconds=self.probe_s)
        assert values.shape == (layout.count,)
        self.told.append(values[self.index])
        return Told(self, values)


class Told:
    """The flight of what a worker tells; it lands when the test says so."""

    def __init__(self, plane, values):
        self._plane, self._values = plane, values

    @property
    def landed(self):
        return self._plane.landed

    def wait(self):
        return self._plane.others + self._values


def plan_of(name, steps=3):
    clock, plane = FakeClock(), ScriptedPlane(name)
    plan = Planned(steps=steps, cap=8.0, clock=clock)
    plan.begin(None, plane)
    return plan, plane, clock


def steps_of_a_round(plan, clock, begun, seconds_a_step):
    """Steps until the plan says that it is time; returns the step."""
    for step in range(begun + 1, begun + 100):
        clock.advance(seconds_a_step)
        if plan.due(step, 1):
            with plan.synchronising(step):
                clock.advance(7.0)  # the wait for others is no part of a step's time
            return step
    raise AssertionError("never due")


def test_a_plan_is_made_anew_of_what_was_measured():
    plan, plane, clock = plan_of("oslo/trainer-0", steps=4)
    plane.probe_s = 2.0
    plane.others[:] = [0.0, 3.0, 6.0, 0.0, 1.0, 5.0]  # seconds a step of all three, then of their transfers
    first = steps_of_a_round(plan, clock, 0, 1.0)
    assert first == 9
    # Oslo's slower worker takes 3 s a step and its shortest transfer 1 s, Rome 4 * 6 + 5 s: (29 - 1) / 3.
    second = steps_of_a_round(plan, clock, first, 4.0)
    assert second - first == 9
    # Its own steps take (1 + 4) / 2 s by now, still fewer than 3.
    plane.others[:] = [0.0, 0.0, 6.0, 0.0, 0.0, 5.0]
    third = steps_of_a_round(plan, clock, second, 2.5)
    assert third - second == 9
    # It is alone at its site: 2.5 s a step and 2 s a transfer.
    assert steps_of_a_round(plan, clock, third, 2.5) - third == 10
    assert set(plane.scopes) == {f"{OWN}oslo"}


def rome_and_a_quick_worker():
    """Rome tells that its steps take 4 s."""
    plan, plane, clock = plan_of("oslo/trainer-0", steps=10)
    plane.others[2] = 4.0
    return plan, plane, clock


def test_the_first_round_is_planned_while_it_goes_on_without_the_very_first_step():
    plan, plane, clock = rome_and_a_quick_worker()
    clock.advance(100.0)
    assert not plan.due(1, 1)
    assert steps_of_a_round(plan, clock, 1, 1.0) == 40
    assert plane.told == [1.0, 1.0]


def test_what_was_told_of_the_first_steps_is_forgotten_when_the_round_is_over():
    plan, plane, clock = rome_and_a_quick_worker()
    assert not any(plan.due(step, 1) for step in (1, 2, 3) if not clock.advance(2.0))
    end = steps_of_a_round(plan, clock, 3, 1.0)
    assert end == 20
    assert plane.told == [2.0, (2 * 2.0 + 17 * 1.0) / 19]


def test_who_has_not_been_told_goes_on_but_not_beyond_the_cap():
    plan, plane, clock = rome_and_a_quick_worker()
    plane.landed = False
    assert not any(plan.due(step, 1) for step in range(1, 80) if not clock.advance(1.0))
    assert plan.due(80, 1) == [0]


def test_who_is_told_late_ends_the_round_at_once():
    plan, plane, clock = rome_and_a_quick_worker()
    plane.landed = False
    assert not any(plan.due(step, 1) for step in range(1, 50) if not clock.advance(1.0))
    plane.landed = True
    assert plan.due(50, 1) == [0]


def test_a_first_round_that_a_checkpoint_interrupts_is_as_long_for_all():
    plan, plane, clock = rome_and_a_quick_worker()
    plane.landed = False
    assert not any(plan.due(step, 1) for step in range(1, 6) if not clock.advance(1.0))
    state = plan.state()
    resumed, _, later = rome_and_a_quick_worker()
    resumed.load_state(state)
    for each, its_clock in ((plan, clock), (resumed, later)):
        its_clock.advance(1000.0)  # what the checkpoint, or coming back, takes is no step
        assert not each.due(6, 1)
        assert steps_of_a_round(each, its_clock, 6, 1.0) == 10
    assert plane.told == [1.0, 1.0]


def test_a_longer_transfer_is_believed_by_and_by_and_a_shorter_one_at_once():
    plan, plane, clock = plan_of("rome/trainer-0")
    told, step = [], 0
    for plane.probe_s in (8.0, 80.0, 80.0, 3.0, 3.0):
        step = steps_of_a_round(plan, clock, step, 1.0)
        told.append(plan._transfer_s)
    assert told == [8.0, 10.0, 12.5, 3.0, 3.0]


def test_a_probe_waits_for_no_other_site():
    answered = threading.Event()

    def watch(message):
        if (
            isinstance(message, Answer)
            and message.round.unit.role == PROBE
            and message.round.scope == "own site-0"
        ):
            answered.set()
        return False

    def pause(name, step):
        if name.startswith("site-1") and step == 1:
            assert answered.wait(20), "the probe of a site waited for another"

    transport = MemoryTransport()
    transport.faults.add("none", watch)
    _, replicas = train("esync(steps=2)", 6, topology(2, 1), pause, transport=transport)
    assert np.abs(one_model(replicas)).max() > 0.01
