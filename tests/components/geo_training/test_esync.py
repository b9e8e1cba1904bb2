"""ESync's plan: of measured seconds a step and of transfers, held by an oracle and over a tree."""

import threading
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
from geokfp.components.geo_training.messages import Answer
from geokfp.components.geo_training.plane import Members
from geokfp.components.geo_training.synchronization.esync import PROBE, Planned, steps_of_sites
from geokfp.components.geo_training.units import OWN
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

    def sum(self, role, layout, values, scope=None):
        if role == PROBE:
            self.scopes.append(scope)
            return SimpleNamespace(wait=lambda: values, seconds=self.probe_s)
        assert values.shape == (layout.count,)
        return SimpleNamespace(wait=lambda: self.others + values)


def plan_of(name):
    clock, plane = FakeClock(), ScriptedPlane(name)
    plan = Planned(steps=4, cap=8.0, clock=clock)
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
    plan, plane, clock = plan_of("oslo/trainer-0")
    plane.probe_s = 2.0
    plane.others[:] = [0.0, 3.0, 6.0, 0.0, 1.0, 5.0]  # seconds a step of all three, then of their transfers
    first = steps_of_a_round(plan, clock, 0, 1.0)
    assert first == 4
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
