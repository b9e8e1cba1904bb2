"""What holds for any values: nothing is lost for good, and what is lost at once is bounded."""

from math import ceil

import numpy as np
import pytest
from geokfp.components.geo_training.compression import compression, decode
from geokfp.components.geo_training.compression.bi_sparse import BiSparse, LargestOfAll
from geokfp.components.geo_training.compression.demo import Cosine
from geokfp.components.geo_training.compression.dense import Dense
from geokfp.components.geo_training.compression.error_feedback import ErrorFeedback
from geokfp.components.geo_training.compression.fp16 import Half
from geokfp.components.geo_training.compression.quantized import Quantized
from geokfp.components.geo_training.compression.top_k import ChunkedTopK
from geokfp.components.geo_training.compression.two_bit import TwoBit
from geokfp.components.geo_training.compression.zstd import Zstandard
from geokfp.components.geo_training.wire.units import Unit
from hypothesis import given
from hypothesis import strategies as st
from support.gradients import gradients, rounds_of, tame_gradients

CODECS = {
    "fp16": Half(),
    "8 bits": Quantized(8),
    "4 bits": Quantized(4, 32),
    "2 bits": Quantized(2),
    "top-k": ChunkedTopK(0.05, Dense()),
    "top-k of 2 bits": ChunkedTopK(0.05, Quantized(2)),
    "dense top-k of fp16": ChunkedTopK(0.6, Half()),
    "largest of all": LargestOfAll(0.05, Quantized(8)),
    "largest by sample": LargestOfAll(0.1, Dense(), is_sampled=True),
    "two bit": TwoBit(0.5),
    "cosine": Cosine(16, ChunkedTopK(0.05, Quantized(4))),
    "zstd": Zstandard(ChunkedTopK(0.05, Quantized(8))),
}
ROUNDING = 1e-5
"""Of the largest magnitude; FP32 has 6e-8 an operation, a sum of rounds and a transform have some."""


def unit_of(values: np.ndarray) -> Unit:
    return Unit("gradient", 0, values.size)


def near(one: np.ndarray, other: np.ndarray, scale: float) -> None:
    np.testing.assert_allclose(one, other, rtol=0, atol=ROUNDING * scale)


def largest(values: np.ndarray) -> float:
    return float(np.abs(values).max(initial=0.0))


@pytest.mark.parametrize("name", CODECS)
@given(gradients)
def test_what_was_sent_and_what_was_left_is_what_was_given(name, values):
    feedback, unit = ErrorFeedback(CODECS[name]), unit_of(values)
    near(decode(unit, feedback.encode(unit, values)) + feedback.residual, values, largest(values))


@pytest.mark.parametrize("name", CODECS)
@given(rounds_of(4), st.sampled_from([1.0, 0.95, 0.5]))
def test_over_rounds_nothing_is_lost_but_what_decays(name, rounds, decay):
    feedback, unit = ErrorFeedback(CODECS[name], decay), unit_of(rounds[0])
    sent, kept = np.zeros(unit.count), np.zeros(unit.count)
    for values in rounds:
        given_now = decay * kept + values
        now = decode(unit, feedback.encode(unit, values))
        sent, kept = sent + now, given_now - now
    near(feedback.residual, kept, sum(map(largest, rounds)))
    if decay == 1.0:
        near(sent + feedback.residual, sum(rounds), sum(map(largest, rounds)))


@given(
    rounds_of(4), st.sampled_from([0.02, 0.3, 1.0]), st.booleans(), st.sampled_from([Dense(), Quantized(4)])
)
def test_bi_sparse_without_momentum_loses_nothing_over_rounds(rounds, ratio, is_sampled, codec):
    unit = unit_of(rounds[0])
    bi_sparse = BiSparse(LargestOfAll(ratio, codec, is_sampled=is_sampled), codec, momentum=0.0)
    sent = sum(decode(unit, bi_sparse.encode(unit, values)).astype(np.float64) for values in rounds)
    near(sent + bi_sparse.unsent, sum(rounds), sum(map(largest, rounds)))


@given(gradients, st.sampled_from([0.01, 0.1, 0.5, 1.0]), st.booleans())
def test_bi_sparse_never_sends_more_than_its_ratio(values, ratio, is_sampled):
    unit = unit_of(values)
    indices = LargestOfAll(ratio, Dense(), is_sampled=is_sampled).select(unit, values)
    assert len(indices) <= max(1, int(ratio * values.size))
    assert (np.diff(indices) > 0).all()
    assert (values[indices] != 0).all()
    if not is_sampled:
        assert len(indices) == min(max(1, int(ratio * values.size)), np.count_nonzero(values))


@given(gradients, st.sampled_from([0.001, 0.1, 0.6]))
def test_top_k_sends_the_largest_of_each_chunk_and_as_many_of_each(values, ratio):
    unit = unit_of(values)
    read = decode(unit, ChunkedTopK(ratio, Dense()).encode(unit, values))
    for start in range(0, values.size, 4096):
        chunk, of_chunk = values[start : start + 4096], read[start : start + 4096]
        kept = ceil(ceil(ratio * 4096) * chunk.size / 4096)
        sent = of_chunk != 0
        np.testing.assert_array_equal(of_chunk[sent], chunk[sent])
        order = np.sort(np.abs(chunk))[::-1]
        np.testing.assert_array_equal(np.sort(np.abs(of_chunk))[::-1][:kept], order[:kept])
        assert np.count_nonzero(sent) <= kept


@given(gradients, st.sampled_from([4, 8]), st.sampled_from([8, 100, 1024]))
def test_even_levels_are_off_by_half_a_step_of_their_chunk_at_most(values, bits, chunk):
    unit = unit_of(values)
    lost = np.abs(decode(unit, Quantized(bits, chunk).encode(unit, values)) - values)
    for start in range(0, values.size, chunk):
        top = largest(values[start : start + chunk])
        step = top / (2 ** (bits - 1) - 1)
        assert largest(lost[start : start + chunk]) <= step * 0.5001 + 2.0**-100


@given(tame_gradients, st.sampled_from([8, 100, 1024]))
def test_two_bits_lose_less_than_one_magnitude_a_chunk_would(values, chunk):
    unit = unit_of(values)
    lost = decode(unit, Quantized(2, chunk).encode(unit, values)) - values
    for start in range(0, values.size, chunk):
        magnitudes = np.abs(values[start : start + chunk]).astype(np.float64)
        one = magnitudes - magnitudes.mean()
        assert np.linalg.norm(lost[start : start + chunk]) <= np.linalg.norm(one) * 1.001 + 1e-6


@given(gradients)
def test_half_precision_is_right_to_eleven_bits_or_to_the_units_largest(values):
    unit = unit_of(values)
    lost = np.abs(decode(unit, Half().encode(unit, values)) - values)
    bound = np.maximum(np.abs(values) * 2.0**-11, largest(values) * 2.0**-39)
    assert (lost <= np.maximum(bound, 2.0**-138)).all()


@pytest.mark.parametrize("text", ["top_k(ratio=1)", "bi_sparse(ratio=1)", "top_k(ratio=1, down=union)"])
@given(rounds_of(3))
def test_all_values_sent_in_every_round_is_no_compression(text, rounds):
    unit = unit_of(rounds[0])
    chosen = compression(f"{text} + by_size(bound=0)")
    for encoder in (chosen.up(), chosen.down()):
        for values in rounds:
            np.testing.assert_array_equal(decode(unit, encoder.encode(unit, values)), values)


@given(gradients)
def test_a_cosine_transform_of_all_coefficients_is_the_identity_within_rounding(values):
    unit = unit_of(values)
    read = decode(unit, Cosine(64, ChunkedTopK(1.0, Dense())).encode(unit, values))
    near(read, values, largest(values))
