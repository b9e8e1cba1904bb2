"""Synchronisation as planned: by what was measured, over a tree, with workers that end at unequal steps."""

from types import SimpleNamespace

import numpy as np
import pytest
from geokfp.components._files import InputError
from geokfp.components.geo_training.checkpoints.state import State
from geokfp.components.geo_training.scheduling import controller
from geokfp.components.geo_training.scheduling.controller import FIRST_STEPS, GROWTH, Controller
from geokfp.components.geo_training.scheduling.ladder import adaptive_ladder, steps_ladder
from geokfp.components.geo_training.synchronization.auto import (
    CLEAR_S,
    FIRST_PLAN,
    PLAN_EVERY,
    PROBE,
    PROBE_EVERY,
    Planned,
)
from geokfp.components.geo_training.synchronization.ending import Ask
from geokfp.components.geo_training.synchronization.gradients_first import GradientsFirst
from geokfp.components.geo_training.synchronization.planning import Planner
from geokfp.components.geo_training.tree_job import TreeJob
from geokfp.components.geo_training.wire.units import DELTA, OWN, PLAN, SITE, TREE
from geokfp.components.geo_training.workers.plane import Members
from support.clock import FakeClock
from support.geo_scripts import run_script
from support.geo_tree import topology
from support.vector_training import one_model, train

LATENCY_S, VALUES = 0.0005, 100_000


class ScriptedPlane:
    """The plane of one worker over a link whose rate the test sets; the root plans at once."""

    def __init__(self, clock, seconds_a_byte, ladder=None):
        self.members = Members(workers=("oslo/trainer-0", "rome/trainer-0"), name="oslo/trainer-0")
        self.clock, self.seconds_a_byte = clock, seconds_a_byte
        self.ladder = ladder or adaptive_ladder(64)
        self.planner = Planner(Controller(self.ladder))
        self.probed, self.told = [], []

    def max(self, role, layout, values, scope=None):
        if role == PLAN:
            self.told.append(values.tolist())
            self.answer = self.planner.answer(values)
            return SimpleNamespace(wait=lambda: self.answer)
        assert role == PROBE
        if scope == TREE:
            return SimpleNamespace(wait=lambda: values)
        assert scope == f"{OWN}oslo"
        self.probed.append(layout.count)
        self.clock.advance(LATENCY_S + 4 * layout.count * self.seconds_a_byte)
        return SimpleNamespace(wait=lambda: values)

    def exchange(self):
        """Lets the time of a round pass, on the rung that was answered last."""
        _, bits, ratio, *_ = self.answer
        rung = next(rung for rung in self.ladder if (rung.bits, rung.ratio) == (bits, ratio))
        self.clock.advance(LATENCY_S + VALUES * rung.bytes_a_value * self.seconds_a_byte)


def plan_of(seconds_a_byte, ladder=None, *, gradients=False):
    clock = FakeClock()
    plane = ScriptedPlane(clock, seconds_a_byte, ladder)
    plan = Planned(gradients=gradients, clock=clock)
    plan.begin(SimpleNamespace(layout=SimpleNamespace(count=VALUES)), plane)
    return plan, plane, clock


def due_steps(plan, plane, num_steps, seconds_a_step=0.02):
    """Takes steps; returns those after which sites meet."""
    due = []
    for step in range(1, num_steps + 1):
        plane.clock.advance(seconds_a_step)
        if plan.due(step, 1):
            due.append(step)
            with plan.synchronising(step):
                plane.exchange()  # what a round takes is no part of a step's time
    return due


@pytest.mark.parametrize("seconds_a_byte", [1e-5, 1e-7, 1e-9, 0.0])
def test_a_probe_is_as_large_as_it_needs_to_be_and_no_larger_than_the_model(seconds_a_byte):
    _, plane, _ = plan_of(seconds_a_byte)
    sizes = [count for count in plane.probed if count > 1]
    assert sizes == sorted(sizes)
    assert sizes[-1] <= VALUES
    assert 4 * sizes[-1] * seconds_a_byte >= CLEAR_S or sizes[-1] == VALUES
    assert all(4 * size * seconds_a_byte < CLEAR_S for size in sizes[:-1])


def test_what_is_told_is_what_was_measured():
    plan, plane, clock = plan_of(1e-6)
    clock.advance(100.0)  # the first step sets up
    assert not plan.due(1, 1)
    clock.advance(0.02)
    assert not plan.due(2, 1)
    clock.advance(0.04)
    plan.due(3, 1)
    (told,) = plane.told
    np.testing.assert_allclose(told, [0.03, 1e-6, LATENCY_S, VALUES, 0.0, 0.0, 0.0], rtol=1e-2)


def test_sites_meet_as_the_controller_plans():
    """The oracle: the same controller, told the true numbers."""
    plan, plane, _ = plan_of(4e-5)
    due = due_steps(plan, plane, 250)
    assert plane.told[0][1] == pytest.approx(4e-5, rel=1e-3)
    assert due[0] == FIRST_STEPS
    between = np.diff(due)
    assert between[0] == GROWTH * FIRST_STEPS
    assert set(between[1:].tolist()) == {51}  # as long as its 1.0 s
    assert all(told[0] == pytest.approx(0.02) for told in plane.told[1:])


def test_a_quick_link_is_used_after_each_step_and_asked_about_now_and_then():
    plan, plane, _ = plan_of(1e-12)
    due = due_steps(plan, plane, 8 * PLAN_EVERY)
    assert due == list(range(FIRST_PLAN, 8 * PLAN_EVERY + 1))
    assert len(plane.told) == 8
    with_rate = [index for index, told in enumerate(plane.told) if told[1] > 0]
    assert with_rate == list(range(0, 8, PROBE_EVERY))


def test_a_plan_goes_on_from_its_state():
    plan, plane, clock = plan_of(2e-5)
    due = due_steps(plan, plane, 50)
    again = Planned(gradients=False, clock=clock)
    again.begin(SimpleNamespace(layout=SimpleNamespace(count=VALUES)), plane)
    again.load_state(plan.state())
    following = 2 * due[-1] - due[-2]
    for step in range(51, following + 1):
        clock.advance(0.02)
        assert bool(again.due(step, 1)) == (step == following)


@pytest.mark.parametrize("steps", [FIRST_PLAN, [9, 13, 12, 9], [1, 8, 2, 10]])
@pytest.mark.parametrize("without", [(), [(worker, 1) for worker in range(4)]])
def test_while_gradients_are_exchanged_it_is_full_synchronisation(steps, without, monkeypatch):
    monkeypatch.setattr(controller, "GRADIENT_SHARE", float("inf"))
    (ours, here), (theirs, there) = (train(text, steps, without=without) for text in ("auto", "fsa"))
    np.testing.assert_array_equal(one_model(here), one_model(there))
    assert ours.keys() == theirs.keys()
    for name, seen in ours.items():
        np.testing.assert_array_equal(seen, theirs[name])


@pytest.mark.parametrize("steps", [[9, 13, 12, 9], [1, 8, 2, 10]])
def test_after_the_last_gradient_workers_go_on_from_one_model(steps, monkeypatch):
    monkeypatch.setattr(controller, "GRADIENT_S", 0.0)
    monkeypatch.setattr(controller, "GRADIENT_SHARE", 0.0)  # so that the first plan gives them up
    seen, replicas = train("auto", steps)
    one_model(replicas)
    together = [each[FIRST_PLAN - 1] for each in seen.values() if len(each) >= FIRST_PLAN]
    apart = [each[FIRST_PLAN] for each in seen.values() if len(each) > FIRST_PLAN]
    assert all(np.array_equal(one, together[0]) for one in together)
    assert not all(np.array_equal(one, apart[0]) for one in apart)


def test_gradients_are_exchanged_first_where_the_slowest_site_says_that_it_is_quick():
    assert not plan_of(1e-6, gradients=True)[0].exchanges_gradients  # 0.4 s
    assert plan_of(1e-8, gradients=True)[0].exchanges_gradients
    assert not plan_of(1e-8)[0].exchanges_gradients


def exchange_until(plan, plane, steps, took_s):
    for step in steps:
        plane.clock.advance(0.02)
        began = plan.now()
        plane.clock.advance(took_s)
        plan.exchanged(step, began)


def test_gradients_go_on_while_they_take_little_of_a_step_and_never_come_again():
    plan, plane, clock = plan_of(1e-8, gradients=True)
    exchange_until(plan, plane, range(1, 20), 0.002)
    assert plan.exchanges_gradients
    assert [told[0] for told in plane.told] == pytest.approx([0.02] * 3)
    assert [-told[4] for told in plane.told] == pytest.approx([0.002] * 3)
    again = Planned(clock=clock)
    again.begin(SimpleNamespace(layout=SimpleNamespace(count=VALUES)), plane)
    again.load_state(plan.state())
    assert again.exchanges_gradients
    plane.seconds_a_byte = 1e-7
    exchange_until(plan, plane, range(20, 20 + PLAN_EVERY), 0.012)
    assert plan.exchanges_gradients  # it has taken 0.05 s at the last plan
    exchange_until(plan, plane, range(20 + PLAN_EVERY, 20 + 2 * PLAN_EVERY), 0.012)
    assert not plan.exchanges_gradients
    assert plane.told[-1][1] == pytest.approx(1e-7, rel=0.1)  # was measured anew
    plane.seconds_a_byte = 1e-12
    due_steps(plan, plane, 100)
    assert not plan.exchanges_gradients


def test_computing_that_is_waited_for_is_no_exchange():
    """MXNet computes a gradient until somebody reads it."""
    clock = FakeClock()
    gradient = SimpleNamespace(flat=lambda: clock.advance(3.0) or np.ones(1, np.float32))
    plan = SimpleNamespace(
        exchanges_gradients=True,
        begin=lambda *_: None,
        now=clock,
        exchanged=lambda step, began: told.append((step, clock() - began)),
    )
    told = []
    plane = SimpleNamespace(
        first_round=None,
        mean=lambda *_: SimpleNamespace(wait=lambda: clock.advance(0.5) or np.ones(1, np.float32)),
    )
    replica = SimpleNamespace(
        weights=lambda: np.zeros(1, np.float32), layout=SimpleNamespace(fragments=lambda _: [])
    )
    policy = GradientsFirst(plan)
    policy.begin(replica, plane, lambda _mean: None)
    policy.step(gradient, 8)
    assert told == [(1, pytest.approx(0.5))]


def test_the_workers_of_a_site_meet_between_rounds():
    clock = FakeClock()
    plane = ScriptedPlane(clock, 2e-5)
    plane.members = Members(workers=("oslo/trainer-0", "oslo/trainer-1"), name="oslo/trainer-0")
    plan = Planned(clock=clock)
    layout = SimpleNamespace(count=VALUES)
    plan.begin(SimpleNamespace(layout=layout), plane)
    assert plan.asks()[-1] == Ask(DELTA, layout, SITE)
    plan.load_state(State(facts={**plan.state().facts, "plans": 3, "next": 56, "steps": 26}))
    assert [step for step in range(31, 56) if plan.site_due(step)] == [40, 50]


@pytest.mark.parametrize(
    "choice", ["auto", "auto(max_steps=2)", "auto + outer(momentum=0.5)", "auto + streamed"]
)
@pytest.mark.parametrize("compressed", ["auto", "none", "quantized"])
def test_workers_have_one_model_at_the_end_whoever_ends_first(choice, compressed):
    _, replicas = train(choice, [9, 13, 12, 9], compression=compressed)
    assert np.abs(one_model(replicas)).max() > 0


@pytest.mark.long
def test_levels_change_at_all_nodes_of_a_tree_of_processes(tmp_path):
    """Real processes with long steps: dense from the first round on, and each worker has the same model."""
    script = """
import os
import time

import numpy as np
import torch
from geokfp.components.geo_training.frameworks.torch_worker import join

torch.set_num_threads(1)
torch.manual_seed(int(os.environ["INDEX"]))
model = torch.nn.Linear(100, 50)
geo = join(model, torch.optim.SGD(model.parameters(), lr=0.1))
for _ in range(12):
    model.zero_grad()
    model(torch.randn(4, 100)).square().mean().backward()
    geo.step(4)
geo.finish()
np.savez(os.environ["RESULT"], last=np.concatenate([p.detach().numpy().ravel() for p in model.parameters()]))
"""
    results = run_script(script, tmp_path, synchronization="auto", compression="auto")
    first, second = (one["last"] for one in results.values())
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize(
    ("choices", "what"),
    [
        ({"synchronization": "auto + quorum"}, "quorum leaves out times"),
        (
            {"synchronization": "auto", "compression": "auto", "transmission": "fifo + dgt"},
            "transmission rule dgt with compression 'auto'",
        ),
        (
            {"synchronization": "auto", "transmission": "fifo + multigps"},
            "transmission rule multigps with synchronization 'auto'",
        ),
        (
            {"synchronization": "auto", "transmission": "fifo + tsengine"},
            "transmission rule tsengine with synchronization 'auto'",
        ),
        ({"synchronization": "auto(max_steps=0)"}, "max_steps is 0, allowed: a whole number at least 1"),
        ({"synchronization": "auto", "compression": "auto(bits=4)"}, "option of auto is 'bits'"),
    ],
)
def test_what_cannot_work_is_refused(choices, what):
    with pytest.raises(InputError, match=what.replace("(", r"\(").replace(")", r"\)")):
        TreeJob(run_id="run", workers={"site-0": 1}, topology=topology(1, 1), **choices)


@pytest.mark.parametrize(
    ("given", "written"), [("auto", "none"), ("auto() + zstd", "none + zstd"), ("fp16", "fp16")]
)
def test_where_nobody_plans_auto_is_dense(given, written):
    tree = {"run_id": "run", "workers": {"site-0": 1}, "topology": topology(1, 1)}
    assert TreeJob(synchronization="hfa", compression=given, **tree).compression == written
    assert TreeJob(synchronization="auto", compression=given, **tree).compression == given
    TreeJob(compression=given, transmission="fifo + dgt", **tree)


def test_steps_alone_are_planned_where_the_compression_is_given():
    plan, plane, _ = plan_of(5e-6, steps_ladder(64, 0.05))
    assert np.diff(due_steps(plan, plane, 60)).tolist() == [13, 13, 13]  # 25 ms are a tenth of 13 steps
