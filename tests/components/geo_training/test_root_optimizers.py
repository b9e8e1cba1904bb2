"""Optimizers that act at the root, over a whole tree in memory: against short oracles."""

import threading

import numpy as np
import pytest
from geokfp.components.geo_training.compression import compression, decode
from geokfp.components.geo_training.errors import ProtocolError
from geokfp.components.geo_training.nodes.reductions import REDUCTIONS
from geokfp.components.geo_training.optimizers import build, parse_optimizer
from geokfp.components.geo_training.synchronization import synchronization
from geokfp.components.geo_training.synchronization.agreed import holding_agreed
from geokfp.components.geo_training.synchronization.fsa import FullAtWorker
from geokfp.components.geo_training.synchronization.served import Served
from geokfp.components.geo_training.wire.units import TREE, WEIGHTS, RoundId, Unit
from geokfp.components.geo_training.workers.plane import Members, Plane
from support.geo_tree import at_once, topology, tree
from support.memory_transport import MemoryTransport
from support.vector_training import (
    COUNT,
    LAYOUT,
    PIECES,
    Gradient,
    Vector,
    gradient_of,
    one_model,
    samples_of,
    train,
)

TENSOR = Unit("large", 0, 3)


def test_an_optimizer_at_the_root_equals_one_process_with_it():
    seen, replicas = train("fsa(optimizer=adam(rate=0.05))", 12)
    weights, mean, square = np.zeros(COUNT), np.zeros(COUNT), np.zeros(COUNT)
    share = np.array([samples_of(worker) for worker in range(4)]) / sum(map(samples_of, range(4)))
    for step in range(12):
        gradient = sum(s * gradient_of(weights, worker, step) for worker, s in enumerate(share))
        mean, square = 0.9 * mean + 0.1 * gradient, 0.999 * square + 0.001 * gradient**2
        unbiased = np.sqrt(square / (1 - 0.999 ** (step + 1))) + 1e-8
        weights = weights - 0.05 / (1 - 0.9 ** (step + 1)) * mean / unbiased
        for of_worker in seen.values():
            np.testing.assert_allclose(of_worker[step], weights, rtol=0, atol=2e-6)
    np.testing.assert_allclose(one_model(replicas), weights, rtol=0, atol=2e-6)


def test_descent_at_the_root_is_descent_on_every_worker():
    at_root, at_workers = train("fsa(optimizer=sgd(rate=0.1))", 10)[1], train("fsa", 10)[1]
    np.testing.assert_allclose(one_model(at_root), one_model(at_workers), rtol=0, atol=1e-6)


def test_a_site_alone_trains_with_its_workers_optimizer():
    assert isinstance(synchronization("fsa(optimizer=adam)").worker_of_one_site(), FullAtWorker)


def test_an_outer_optimizer_is_the_one_of_the_optimizers():
    root = synchronization("hfa + outer(rate=0.7, momentum=0.9)").root()
    optimizer = build(parse_optimizer("outer(rate=0.7, momentum=0.9)"))
    unit, weights, moved = Unit("delta large", 0, 3), np.zeros(3, np.float32), np.zeros(3, np.float32)
    for number in range(4):
        change = np.array([1.0, -2.0, number], np.float32)
        moved += root.settle(RoundId(TREE, unit, number), REDUCTIONS["mean"], change * np.float32(2), 2.0)
        optimizer.update("large", weights, -change)
    np.testing.assert_allclose(moved, weights, rtol=1e-6)


@pytest.mark.parametrize("text", ["sgd(rate=0.5)", "dcasgd(rate=0.5)"])
def test_a_site_is_answered_with_what_changed_since_its_last_answer(text):
    served = Served(parse_optimizer(text))
    served.begin(TENSOR, np.array([0.1, 0.2, 1e3], np.float32))
    has = {site: np.array([0.1, 0.2, 1e3], np.float32) for site in ("oslo", "rome")}
    for number, site in enumerate(["oslo", "oslo", "rome", "oslo", "rome", "rome"]):
        gradient = np.array([1.7e-3, 0.3 * number, -1.0], np.float32)
        has[site] += served.step(TENSOR, gradient, site)
        np.testing.assert_allclose(has[site], served.weights(TENSOR), rtol=2e-7)
    for site in has:
        has[site] += served.step(TENSOR, None, site)
        np.testing.assert_allclose(has[site], served.weights(TENSOR), rtol=2e-7)


def test_gradients_before_the_weights_are_the_peers_error():
    with pytest.raises(ProtocolError, match=r"the root has no weights of large\[0\], which come first"):
        Served(parse_optimizer("sgd")).step(TENSOR, np.zeros(3, np.float32), "oslo")


class Turns:
    """Lets the workers of a tree with one a site step in a scripted order, one at a time."""

    def __init__(self, order):
        self._order, self._turn, self._changed = order, 0, threading.Condition()

    def pause(self, name, _step):
        site = int(name.partition("/")[0].removeprefix("site-"))
        with self._changed:
            assert self._changed.wait_for(lambda: self._order[self._turn] == site, 20), "the turn never came"

    def after(self, _name, _step):
        with self._changed:
            self._turn += 1
            self._changed.notify_all()


ORDER = [0, 0, 1, 0, 1, 1, 1, 0, 0, 0, 1, 1, 0]


def train_in_turns(text, compression="none"):
    turns, steps = Turns(ORDER), [ORDER.count(0), ORDER.count(1)]
    shape = topology(2, 1)
    return train(text, steps, shape, turns.pause, after=turns.after, compression=compression)


def test_mixed_with_one_site_is_full_synchronisation_bit_for_bit():
    shape = topology(1, 2)
    for optimizer in ("dcasgd(rate=0.1, lambda=0.04)", "adam(rate=0.05)"):
        mixed = train(f"mixed(optimizer={optimizer})", 10, shape)[1]
        full = train(f"fsa(optimizer={optimizer})", 10, shape)[1]
        np.testing.assert_array_equal(one_model(mixed), one_model(full))


def test_mixed_corrects_what_comes_late_by_what_its_site_was_given_last():
    seen, replicas = train_in_turns("mixed(optimizer=dcasgd(rate=0.1, lambda=0.9))")
    weights, given, step = np.zeros(COUNT), {0: np.zeros(COUNT), 1: np.zeros(COUNT)}, {0: 0, 1: 0}
    for site in ORDER:
        gradient = gradient_of(given[site], site, step[site])
        weights = weights - 0.1 * (gradient + 0.9 * gradient**2 * (weights - given[site]))
        given[site] = weights
        np.testing.assert_allclose(list(seen.values())[site][step[site]], weights, rtol=0, atol=2e-6)
        step[site] += 1
    np.testing.assert_allclose(one_model(replicas), weights, rtol=0, atol=2e-6)


def test_delay_compensation_of_strength_zero_is_plain_descent_bit_for_bit():
    plain = train_in_turns("mixed(optimizer=sgd(rate=0.1))")[1]
    without = train_in_turns("mixed(optimizer=dcasgd(rate=0.1, lambda=0))")[1]
    np.testing.assert_array_equal(one_model(plain), one_model(without))


def test_mixed_answers_each_site_with_a_residual_of_its_own():
    text = "top_k(ratio=0.4) + by_size(bound=0)"
    seen, replicas = train_in_turns("mixed(optimizer=sgd(rate=0.1))", text)
    rate = np.float32(0.1)
    up, down = (
        [compression(text).up(), compression(text).up()],
        [compression(text).down() for _ in range(2)],
    )
    weights, step = np.zeros(COUNT, np.float32), [0, 0]

    def through(link, values):
        parts = []
        for piece in PIECES:
            unit = Unit(f"gradient {piece.name}", 0, piece.count)
            part = values[piece.start : piece.start + piece.count]
            parts.append(decode(unit, link.encode(unit, part)))
        return np.concatenate(parts)

    believed, has = np.zeros((2, COUNT), np.float32), np.zeros((2, COUNT), np.float32)
    for site in ORDER:
        number = np.float32(samples_of(site))
        weights -= rate * (through(up[site], gradient_of(has[site], site, step[site]) * number) / number)
        change = weights - believed[site]
        believed[site] += change
        has[site] += through(down[site], change)
        np.testing.assert_array_equal(list(seen.values())[site][step[site]], has[site])
        step[site] += 1
    np.testing.assert_array_equal(one_model(replicas), weights)


def test_a_site_alone_has_no_part_of_mixed():
    chosen = synchronization("mixed")
    assert isinstance(chosen.worker_of_one_site(), FullAtWorker)
    assert chosen.optimizer == parse_optimizer("dcasgd")


def test_sites_that_step_at_once_lose_no_gradient():
    """Descent adds gradients up in any order, when they do not depend on the weights."""
    served, steps = Served(parse_optimizer("sgd(rate=1)")), 200
    served.begin(TENSOR, np.zeros(3, np.float32))

    def work(site):
        return sum(served.step(TENSOR, np.ones(3, np.float32), site) for _ in range(steps))

    changes = at_once(work, ["oslo", "rome", "lima"])
    np.testing.assert_array_equal(served.weights(TENSOR), np.full(3, -3.0 * steps))
    assert min(float(change.min()) for change in changes.values()) == -3.0 * steps


def test_where_all_meet_the_agreed_weights_of_mixed_are_the_roots_and_ones_own_stay():
    shape, text = topology(2, 2), "mixed(optimizer=sgd(rate=0.1))"
    replicas = {name: Vector() for name in shape.workers}

    def work(name):
        worker, replica = shape.workers.index(name), replicas[name]
        plane = Plane(whole.client(name), Members(workers=shape.workers, name=name))
        policy, found = synchronization(text).worker(meets=True), []
        plane.sum(WEIGHTS, LAYOUT, replica.weights() if plane.index == 0 else None).wait()
        policy.begin(replica, plane, None)
        for step in range(6):
            policy.step(Gradient(gradient_of(replica.weights(), worker, step)), 1)
            if step % 3 == 2:
                own = replica.weights()
                with holding_agreed(policy, replica):
                    found.append(replica.weights())
                np.testing.assert_array_equal(replica.weights(), own)
                assert not np.array_equal(found[-1], own)
        policy.finish()
        plane.close()
        return found

    lossy = "top_k(ratio=0.4) + by_size(bound=0)"
    with tree(shape, MemoryTransport(), synchronization=text, compression=lossy) as whole:
        found = at_once(work, shape.workers)
    assert not whole.errors
    first, last = found[shape.workers[0]]
    assert not np.array_equal(first, last)
    for of_worker in found.values():
        np.testing.assert_array_equal(of_worker, [first, last])
    np.testing.assert_array_equal(one_model(replicas), last)


def test_where_they_do_not_meet_there_are_none_but_ones_own():
    assert synchronization("mixed").worker().agreed() is None
    assert synchronization("fsa(optimizer=adam)").worker(meets=True).agreed() is None
