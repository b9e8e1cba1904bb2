"""Each unit has a compressor of its own, whatever threads come with what."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from geokfp.components.geo_training.compression import compression, decode
from geokfp.components.geo_training.compression.dense import Dense
from geokfp.components.geo_training.compression.per_unit import PerUnit
from geokfp.components.geo_training.wire.units import Unit
from support.gradients import gradient, normal

COUNT = 5000


def test_units_have_residuals_of_their_own_and_links_too():
    chosen = compression("top_k(ratio=0.1)")
    units = [Unit("gradient", offset, COUNT) for offset in (0, COUNT)]
    values = [gradient(normal, COUNT, seed) for seed in range(2)]
    link, other_link = chosen.up(), chosen.up()
    first = [link.encode(unit, one) for unit, one in zip(units, values, strict=True)]
    for unit, one, payload in zip(units, values, first, strict=True):
        again = other_link.encode(unit, one)
        np.testing.assert_array_equal(decode(unit, again), decode(unit, payload))
    later = decode(units[0], link.encode(units[0], values[0]))
    assert not np.array_equal(later, decode(units[0], first[0]))


@pytest.mark.parametrize(("count", "codec"), [(999, "dense"), (1000, "sparse/dense")])
def test_a_unit_is_small_below_the_bound(count, codec):
    values = gradient(normal, count, 0)
    assert compression("top_k").up().encode(Unit("gradient", 0, count), values).codec == codec


@pytest.mark.parametrize(("key", "is_lossy"), [
    ("gradient", True), ("gradient torch.float32", True), ("delta", True), ("delta 3", True),
    ("weights torch.float32", False), ("numbers", False), ("gradient_norm", False), ("", False),
])  # fmt: skip
def test_only_gradients_and_deltas_may_lose_something(key, is_lossy):
    values = gradient(normal, COUNT, 0)
    unit = Unit(key, 0, COUNT)
    sent = decode(unit, compression("quantized(bits=4)").up().encode(unit, values))
    assert np.array_equal(sent, values) is not is_lossy


def test_threads_that_encode_one_unit_at_once_lose_nothing():
    encoder, unit = compression("quantized(bits=4)").up(), Unit("gradient", 0, COUNT)
    values = [gradient(normal, COUNT, seed) for seed in range(40)]
    with ThreadPoolExecutor(4) as threads:
        sent = sum(decode(unit, p) for p in threads.map(lambda one: encoder.encode(unit, one), values))
    left = decode(unit, compression("none").up().encode(unit, sum(values) - sent))
    assert float(np.abs(left).max()) < 2.0


def test_a_unit_waits_for_no_other():
    entered, go_on = threading.Event(), threading.Event()

    class Slow(Dense):
        def encode(self, unit, values):
            entered.set()
            assert go_on.wait(20.0)
            return super().encode(unit, values)

    encoder = PerUnit(lambda unit: Slow() if unit.offset == 0 else Dense())
    values = gradient(normal, COUNT, 0)
    with ThreadPoolExecutor(1) as thread:
        slow = thread.submit(encoder.encode, Unit("gradient", 0, COUNT), values)
        assert entered.wait(20.0)
        quick = encoder.encode(Unit("gradient", COUNT, COUNT), values)
        assert not slow.done()
        go_on.set()
        assert slow.result(20.0).num_bytes == quick.num_bytes


@pytest.mark.parametrize("text", ["bi_sparse(ratio=0.5)", "mpq(ratio=0.5, bound=0)"])
def test_a_change_of_weights_gains_no_momentum(text):
    """A constant change, half of it sent a round, comes whole in the end and no more of it."""
    given = np.array([1.0, -2.0, 3.0, -4.0], np.float32)
    sums = {}
    for role in ("gradient", "delta"):
        unit, up = Unit(f"{role} w", 0, 4), compression(f"{text} + by_size(bound=0)").up()
        sums[role] = sum(decode(unit, up.encode(unit, given)) for _ in range(20))
    assert np.abs(sums["delta"] - 20 * given).max() <= 2 * np.abs(given).max()
    assert np.abs(sums["gradient"]).max() > 1.2 * 20 * np.abs(given).max()
