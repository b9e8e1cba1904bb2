"""A compression whose level changes: neutral it is none, nothing is lost by a change, and answers set it."""

import numpy as np
import pytest
from geokfp.components.geo_training.compression import compression, decode
from geokfp.components.geo_training.compression.error_feedback import ErrorFeedback
from geokfp.components.geo_training.compression.level import ByLevel, Level
from geokfp.components.geo_training.compression.needed import bytes_a_value
from geokfp.components.geo_training.scheduling.ladder import adaptive_ladder
from geokfp.components.geo_training.wire.units import DELTA, PLAN, Unit
from hypothesis import given
from hypothesis import strategies as st

COUNT = 5000
UNIT = Unit(f"{DELTA} w", 0, COUNT)
LEVELS = list(dict.fromkeys((rung.bits, rung.ratio) for rung in adaptive_ladder(64)))


def values_of(seed):
    return np.random.default_rng(seed).normal(size=COUNT).astype(np.float32)


def plan(bits, ratio):
    return Unit(PLAN, 0, 4), np.array([3.0, bits, ratio, 0.0])


def test_dense_is_none_bit_for_bit_and_shares_no_memory():
    up, values = compression("auto").up(), values_of(0)
    payload = up.encode(UNIT, values)
    np.testing.assert_array_equal(payload.buffers[0], values)
    assert payload.codec == "dense"
    assert up.encode(UNIT, values_of(1)).buffers[0] is not payload.buffers[0]
    np.testing.assert_array_equal(payload.buffers[0], values)


@given(st.lists(st.sampled_from(LEVELS), min_size=1, max_size=8), st.integers(0, 100))
def test_what_a_level_loses_later_ones_send(levels, seed):
    level = Level()
    feedback = ErrorFeedback(ByLevel(level))
    given_sum, sent_sum = np.zeros(COUNT), np.zeros(COUNT)
    for index, (bits, ratio) in enumerate(levels):
        level.set(bits, ratio)
        values = values_of(seed + index)
        given_sum += values
        sent_sum += decode(UNIT, feedback.encode(UNIT, values))
    np.testing.assert_allclose(sent_sum + feedback.residual, given_sum, atol=1e-4)
    level.set(32, 1.0)
    sent_sum += decode(UNIT, feedback.encode(UNIT, np.zeros(COUNT, np.float32)))
    np.testing.assert_allclose(sent_sum, given_sum, atol=1e-4)


@pytest.mark.parametrize(("bits", "ratio"), LEVELS)
def test_an_answer_that_passes_sets_the_level_of_the_same_node(bits, ratio):
    chosen, other = compression("auto"), compression("auto")
    listening = chosen.listening(compression("none").down())
    listening.encode(*plan(bits, ratio))
    assert chosen.spec.technique.level.now == (bits, ratio)
    assert other.spec.technique.level.now == (32, 1.0)
    num_bytes = chosen.up().encode(UNIT, values_of(0)).num_bytes
    (rung, *_) = [rung for rung in adaptive_ladder(64) if (rung.bits, rung.ratio) == (bits, ratio)]
    assert num_bytes == pytest.approx(rung.bytes_a_value * COUNT, rel=0.15)


def test_others_do_not_listen():
    down = compression("none").down()
    assert compression("quantized").listening(down) is down


def test_a_level_is_kept_with_the_residuals():
    chosen = compression("auto")
    chosen.spec.technique.level.set(4, 1.0)
    up = chosen.up()
    up.encode(UNIT, values_of(0))
    later = compression("auto")
    again = later.up()
    again.load_state(up.state())
    assert later.spec.technique.level.now == (4, 1.0)
    expected, found = up.encode(UNIT, values_of(1)), again.encode(UNIT, values_of(1))
    for one, other in zip(expected.buffers, found.buffers, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(("text", "expected"), [("none", 4.0), ("fp16", 2.0), ("quantized(bits=2)", 0.26)])
def test_what_a_value_needs_is_found_by_encoding_some(text, expected):
    assert bytes_a_value(compression(text)) == pytest.approx(expected, rel=0.01)
