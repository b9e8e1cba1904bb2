"""Optimizers that act at the root, over a whole tree in memory: against short oracles."""

import numpy as np
import pytest
from geokfp.components.geo_training.errors import ProtocolError
from geokfp.components.geo_training.optimizers import build, parse_optimizer
from geokfp.components.geo_training.reductions import REDUCTIONS
from geokfp.components.geo_training.synchronization import synchronization
from geokfp.components.geo_training.synchronization.fsa import FullAtWorker
from geokfp.components.geo_training.synchronization.served import Served
from geokfp.components.geo_training.units import TREE, RoundId, Unit
from support.vector_training import COUNT, gradient_of, one_model, samples_of, train

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
