"""The policies over a whole tree in memory: against short oracles, at neutral settings, and at the end."""

import re
import threading

import numpy as np
import pytest
from geokfp.components._files import InputError
from geokfp.components.geo_training.links.client import Terms
from geokfp.components.geo_training.synchronization import synchronization
from geokfp.components.geo_training.tree_job import TreeJob
from geokfp.components.geo_training.wire.units import TREE, Unit
from geokfp.components.geo_training.workers.plane import Layout, Members, Plane
from support.geo_tree import at_once, topology, tree
from support.memory_transport import MemoryTransport
from support.vector_training import COUNT, gradient_of, one_model, samples_of, train


def oracle_hfa(steps, period, outer=None):
    """HFA with two sites of two workers, sample-weighted, in ten lines of numpy."""
    rate, momentum = outer or (1.0, 0.0)
    share = np.array([samples_of(w) for w in range(4)], np.float64)
    share /= share.sum()
    anchor, velocity = np.zeros(COUNT), np.zeros(COUNT)
    weights, seen = [anchor.copy() for _ in range(4)], []
    for step in range(steps):
        weights = [w - 0.1 * gradient_of(w, i, step) for i, w in enumerate(weights)]
        if (step + 1) % period == 0 or step + 1 == steps:
            change = sum(s * (w - anchor) for s, w in zip(share, weights, strict=True))
            velocity = momentum * velocity + change
            anchor = anchor + rate * (momentum * velocity + change)
            weights = [anchor.copy() for _ in range(4)]
        seen.append([w.copy() for w in weights])
    return seen


@pytest.mark.parametrize(("rule", "outer"), [("", None), (" + outer(rate=0.7, momentum=0.9)", (0.7, 0.9))])
def test_hfa_and_the_outer_optimizer_agree_with_numpy(rule, outer):
    seen, _ = train(f"hfa(k1=3){rule}", steps=12)
    for step, of_workers in enumerate(oracle_hfa(12, 3, outer)):
        for worker, expected in enumerate(of_workers):
            if step < 11:
                np.testing.assert_allclose(list(seen.values())[worker][step], expected, rtol=0, atol=2e-6)


def test_an_outer_step_of_rate_1_without_momentum_is_hfa_bit_for_bit():
    plain, outer = train("hfa(k1=4)", 10)[1], train("hfa(k1=4) + outer(rate=1, momentum=0)", 10)[1]
    for name in plain:
        np.testing.assert_array_equal(plain[name].weights(), outer[name].weights())


def test_hfa_of_one_step_is_full_synchronisation():
    full, each = train("fsa", 8)[1], train("hfa(k1=1)", 8)[1]
    for name in full:
        np.testing.assert_allclose(each[name].weights(), full[name].weights(), rtol=0, atol=2e-6)


def test_fragments_all_at_once_are_the_whole():
    whole, parts = train("hfa(k1=1)", 6)[1], train("hfa(k1=1) + streamed(fragments=2)", 6)[1]
    for name in whole:
        np.testing.assert_array_equal(parts[name].weights(), whole[name].weights())


def test_sites_average_between_the_rounds_of_all():
    seen, _ = train("hfa(k1=2, k2=3)", 12)
    names = list(seen)
    for step in range(11):
        same = [np.array_equal(seen[names[0]][step], seen[name][step]) for name in names[1:]]
        whole = (step + 1) % 6 == 0
        assert same == ([True] * 3 if whole else [(step + 1) % 2 == 0, False, False]), step


def test_nbsync_that_never_overlaps_a_step_is_hfa():
    """One worker's correction is none, whenever it comes."""
    shape = topology(1, 1)
    plain, late = train("hfa(k1=2)", 7, shape)[1], train("nbsync(steps=2)", 7, shape)[1]
    for name in plain:
        np.testing.assert_allclose(late[name].weights(), plain[name].weights(), rtol=0, atol=1e-6)


@pytest.mark.parametrize("text", ["nbsync(steps=3, damping=0.5)", "nbsync(steps=2) + streamed(fragments=2)"])
def test_nbsync_keeps_the_steps_taken_meanwhile_and_ends_with_one_model(text):
    _, replicas = train(text, 20)
    reference = train("fsa", 20)[1]
    assert np.abs(one_model(replicas) - next(iter(reference.values())).weights()).max() < 0.3


EVERY = [
    "fsa",
    "fsa(optimizer=adam(rate=0.05))",
    "mixed(optimizer=sgd(rate=0.1))",
    "mixed",
    "hfa(k1=2)",
    "hfa(k1=2, k2=2)",
    "hfa(k1=3) + outer",
    "hfa(k1=4) + streamed(fragments=2)",
    "nbsync(steps=2)",
    "nbsync(steps=4, damping=0.5) + streamed(fragments=2) + outer",
    "esync(steps=2)",
    "auto(max_steps=2)",
]


@pytest.mark.parametrize("text", EVERY)
def test_workers_with_unequal_numbers_of_steps_end_together_with_one_model(text):
    _, replicas = train(text, [3, 9, 0, 14])
    assert np.abs(one_model(replicas)).max() > 0.01


@pytest.mark.parametrize("text", EVERY)
def test_steps_without_samples_after_all_others_have_ended_do_not_look_like_the_end(text):
    without = {(3, 5), (3, 6), (0, 1), (1, 1), (2, 1), (3, 1)}
    seen, replicas = train(text, [3, 2, 4, 9], without=without)
    weights = one_model(replicas)
    last = list(seen.values())[3]
    assert len(last) == 9
    assert not np.array_equal(last[6], last[7])
    assert np.isfinite(weights).all()


@pytest.mark.parametrize("text", [each for each in EVERY if not each.startswith("hfa(k1=3)")])
def test_what_is_measured_is_averaged_by_samples_and_never_moved_by_the_outer_optimizer(text):
    _, replicas = train(text, 8)
    mean = sum(samples_of(i) * i for i in range(4)) / sum(samples_of(i) for i in range(4))
    measured = {replica.statistics().item() for replica in replicas.values()}
    assert len(measured) == 1
    assert measured.pop() == pytest.approx(mean, rel=1e-5)


QUORUMS = ["fsa + quorum(workers=1, grace_s=0)", "hfa(k1=2) + quorum(workers=1, grace_s=0)"]


@pytest.mark.parametrize("text", [*EVERY, *QUORUMS])
def test_what_all_have_measured_in_the_end_is_averaged_whoever_ended_first(text):
    steps = [3, 9, 1, 14]
    _, replicas = train(text, steps, measuring=True)
    weights = [samples_of(worker) * number for worker, number in enumerate(steps)]
    measured = {replica.statistics().item() for replica in replicas.values()}
    assert len(measured) == 1
    assert measured.pop() == pytest.approx(np.average(range(4), weights=weights), rel=1e-5)


@pytest.mark.parametrize("technique", ["fsa", "fsa(optimizer=adam)", "hfa(k1=2)", "nbsync(steps=2)"])
def test_a_quorum_does_not_wait_for_the_slow_site_whose_part_counts_later(technique):
    held = threading.Event()
    shape = topology(2, 1)

    def pause(name, step):
        if name.startswith("site-0") and step == 6:
            held.set()
        if name.startswith("site-1") and step == 2:
            assert held.wait(20), "the quick site waited for the slow one"

    seen, replicas = train(f"{technique} + quorum(workers=1, grace_s=0)", 8, shape, pause)
    one_model(replicas)
    assert len(seen["site-1/trainer-0"]) == 8


def test_what_comes_late_with_some_of_its_units_only_is_whole_with_zeros():
    shape, layout = topology(2, 1), Layout.of([("first", 1000), ("second", 1500)])
    ones, results = np.ones(2500, np.float32), {}
    parts_have_come = threading.Event()

    def work(name):
        client = whole.client(name)
        plane = Plane(client, Members(workers=shape.workers, name=name))
        if plane.index == 0:
            assert plane.mean("delta", layout, ones, 1.0).wait() is not None
            first_has_come.set()
            assert parts_have_come.wait(20)
            flight = plane.mean("delta", layout, None, 0.0)
            results[name] = flight.wait()
            assert flight.weight == 2.0
            plane.mean("delta", layout, None, 0.0).wait()
        else:
            assert first_has_come.wait(20)
            late = [client.next_round(TREE, Unit("delta first", 0, 1000))]
            late.append(client.next_round(TREE, Unit("delta second", 0, 1500)))
            terms = Terms(reduction="mean", weight=2.0)
            client.wait(client.push(late[0], 2 * 3 * ones[:1000], terms))
            parts_have_come.set()
            results[name] = plane.mean("delta", layout, None, 0.0).wait()
            client.wait(client.push(late[1], 2 * 3 * ones[:1500], terms))
            results["rest"] = plane.mean("delta", layout, None, 0.0).wait()
        plane.close()

    first_has_come = threading.Event()
    rule = "hfa + quorum(workers=1, grace_s=0)"
    with tree(shape, MemoryTransport(), synchronization=rule) as whole:
        at_once(work, shape.workers)
    assert not whole.errors
    for name in shape.workers:
        np.testing.assert_array_equal(results[name], [3.0] * 1000 + [0.0] * 1500)
    np.testing.assert_array_equal(results["rest"], [0.0] * 1000 + [3.0] * 1500)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("hfaa", "name is 'hfaa', allowed: .*; nearest: hfa"),
        ("hfa(k3=1)", "option of hfa is 'k3', allowed: k1, k2"),
        ("hfa(k1=0)", "k1 is 0, allowed: a whole number at least 1 and at most 1000000"),
        ("hfa(k1=x)", "k1 is 'x', allowed: a whole number at least 1"),
        ("hfa + outr", "rule is 'outr', allowed: .*; nearest: outer"),
        ("hfa + outer + outer", "rule outer is given twice, allowed: once"),
        ("fsa + outer", "rule outer is for changes of weights, .*allowed with: hfa, esync, nbsync, auto"),
        ("fsa + streamed", "rule streamed is for changes of weights"),
        ("mixed + outer", "rule outer is for changes of weights"),
        ("mixed + streamed", "rule streamed is for changes of weights"),
        ("esync + quorum", "rule quorum leaves out times that a plan needs, allowed with: fsa, mixed, hfa"),
        ("auto + quorum", "rule quorum leaves out times that a plan needs, allowed with: fsa, mixed, hfa"),
        ("mixed(optimizer=dcasgd(lambda=-1))", "optimizer: lambda is -1.0, allowed: a number at least 0"),
        ("hfa(", "the name of an option is expected at column 5"),
        ("hfa + outer(weight_decay=0.1)", "weight_decay of outer is 0.1, allowed: 0"),
        ("fsa(optimizer=adma)", "optimizer: name is 'adma', allowed: .*; nearest: adam"),
        ("fsa(optimizer=adam(rate=0))", "optimizer: rate is 0.0, allowed: a number above 0"),
        ("hfa + quorum(grace_s=-1)", "grace_s is -1.0, allowed: a number at least 0 and at most 86400"),
    ],
)
def test_what_cannot_work_is_refused_by_name(text, says):
    with pytest.raises(InputError, match=f"^synchronization {re.escape(repr(text))}: .*{says}"):
        synchronization(text)


def test_a_quorum_of_more_workers_than_there_are_is_refused_where_the_tree_is_known():
    says = "^synchronization: workers of quorum is 5, allowed: at most the 4 of all sites"
    with pytest.raises(InputError, match=says):
        TreeJob(
            run_id="run",
            workers={"site-0": 2, "site-1": 2},
            topology=topology(2, 2),
            synchronization="hfa + quorum(workers=5)",
        )


def test_what_is_no_text_is_refused_by_name():
    with pytest.raises(InputError, match=r"^synchronization is 3, allowed: text, as in name\(option=value"):
        synchronization(3)
