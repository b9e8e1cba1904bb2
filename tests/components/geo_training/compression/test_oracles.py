"""Each technique against the same in about ten lines of plain numpy, round by round."""

from math import ceil

import numpy as np
import pytest
from geokfp.components.geo_training.compression import compression, decode
from geokfp.components.geo_training.wire.units import Unit
from scipy import fft
from support.gradients import gradient, mostly_zero, normal

COUNT = 10_000
NUM_ROUNDS = 5
UNIT = Unit("gradient", 0, COUNT)


def given_rounds() -> list[np.ndarray]:
    return [gradient(normal, COUNT, seed) for seed in range(NUM_ROUNDS)]


def sent_rounds(text: str, way: str = "up") -> list[np.ndarray]:
    encoder = getattr(compression(text), way)()
    return [decode(UNIT, encoder.encode(UNIT, values)) for values in given_rounds()]


def fed_back(lossy, decay: float = 1.0) -> list[np.ndarray]:
    residual, sent = np.zeros(COUNT, np.float32), []
    for values in given_rounds():
        residual = np.float32(decay) * residual + values
        sent.append(lossy(residual))
        residual = residual - sent[-1]
    return sent


def of_chunks(lossy, values: np.ndarray, chunk: int) -> np.ndarray:
    return np.concatenate([lossy(values[start : start + chunk]) for start in range(0, len(values), chunk)])


def only_largest(values: np.ndarray, kept: int) -> np.ndarray:
    chosen = np.zeros_like(values)
    order = np.argsort(-np.abs(values), kind="stable")[:kept]
    chosen[order] = values[order]
    return chosen


def top_k(values: np.ndarray, ratio: float) -> np.ndarray:
    kept = ceil(ratio * 4096)
    return of_chunks(lambda chunk: only_largest(chunk, ceil(kept * len(chunk) / 4096)), values, 4096)


def even_levels(values: np.ndarray, levels: int) -> np.ndarray:
    step = np.abs(values).max() / np.float32(levels)
    return np.rint(values / step) * step


def two_magnitudes(values: np.ndarray) -> np.ndarray:
    magnitudes = np.abs(values).astype(np.float64)
    middle = magnitudes.mean()
    for _ in range(2):
        low, high = magnitudes[magnitudes <= middle].mean(), magnitudes[magnitudes > middle].mean()
        middle = (low + high) / 2
    return (np.sign(values) * np.where(magnitudes > middle, high, low)).astype(np.float32)


def same(sent: list[np.ndarray], expected: list[np.ndarray], rtol: float = 2e-6) -> None:
    for one, other in zip(sent, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=rtol, atol=1e-6)


def test_half_precision_is_a_cast_where_nothing_underflows():
    for sent, values in zip(sent_rounds("fp16"), given_rounds(), strict=True):
        ordinary = np.abs(values) > 1e-3
        cast = values.astype(np.float16).astype(np.float32)
        np.testing.assert_array_equal(sent[ordinary], cast[ordinary])


@pytest.mark.parametrize(("bits", "levels", "chunk"), [(8, 127, 1024), (4, 7, 1024), (4, 7, 96)])
def test_even_levels(bits, levels, chunk):
    expected = fed_back(lambda values: of_chunks(lambda c: even_levels(c, levels), values, chunk))
    same(sent_rounds(f"quantized(bits={bits}, chunk={chunk})"), expected)


def test_two_bits():
    expected = fed_back(lambda values: of_chunks(two_magnitudes, values, 1024))
    same(sent_rounds("quantized(bits=2)"), expected)


@pytest.mark.parametrize("decay", [1.0, 0.95])
def test_chunked_top_k_with_error_feedback(decay):
    expected = fed_back(lambda values: top_k(values, 0.02), decay)
    same(sent_rounds(f"top_k(ratio=0.02, feedback={decay})"), expected)
    same(sent_rounds(f"top_k(ratio=0.02, feedback={decay})", "down"), expected)


def test_chunked_top_k_of_two_bits():
    def lossy(values: np.ndarray) -> np.ndarray:
        chosen = top_k(values, 0.02)
        chosen[chosen != 0] = of_chunks(two_magnitudes, chosen[chosen != 0], 1024)
        return chosen

    same(sent_rounds("top_k(ratio=0.02, bits=2)"), fed_back(lossy))


def test_bi_sparse():
    velocity, unsent, expected = np.zeros(COUNT, np.float32), np.zeros(COUNT, np.float32), []
    for values in given_rounds():
        velocity = np.float32(0.9) * velocity + values
        unsent = unsent + velocity
        expected.append(only_largest(unsent, int(0.03 * COUNT)))
        velocity = np.where(expected[-1] != 0, 0, velocity)
        unsent = np.where(expected[-1] != 0, 0, unsent)
    same(sent_rounds("bi_sparse(ratio=0.03)"), expected)


def test_bi_sparse_down_is_the_union_exactly_or_lossy_with_its_own_feedback():
    sparse = np.where(gradient(mostly_zero, COUNT, 9) != 0, gradient(normal, COUNT, 9), 0).astype(np.float32)
    payload = compression("bi_sparse(ratio=0.001)").down().encode(UNIT, sparse)
    assert payload.codec == "sparse/dense"
    np.testing.assert_array_equal(decode(UNIT, payload), sparse)
    expected = fed_back(lambda values: only_largest(values, 300))
    same(sent_rounds("bi_sparse(ratio=0.03, down=lossy)", "down"), expected)


def test_a_sampled_threshold_is_near_the_exact_one():
    count = 1_000_000
    unit, values = Unit("gradient", 0, count), gradient(normal, count, 0)
    payload = compression("bi_sparse(ratio=0.01, threshold=sampled)").up().encode(unit, values)
    sent = decode(unit, payload)
    num_sent, exact = np.count_nonzero(sent), only_largest(values, count // 100)
    assert 0.7 * count / 100 <= num_sent <= count / 100
    assert np.count_nonzero(sent[exact != 0]) == num_sent


def test_mpq_is_sparse_from_its_bound_on_and_fp16_below():
    chosen = compression("mpq(ratio=0.03, bound=9000)")
    large = decode(UNIT, chosen.up().encode(UNIT, given_rounds()[0]))
    np.testing.assert_array_equal(large, only_largest(given_rounds()[0], int(0.03 * COUNT)))
    values, unit = given_rounds()[0][:8999], Unit("gradient", 0, 8999)
    for encoder in (chosen.up(), chosen.down()):
        payload = encoder.encode(unit, values)
        assert (payload.codec, payload.num_bytes) == ("fp16", 2 * 8999 + 4)


def test_two_bit_of_mxnet():
    residual, expected = np.zeros(COUNT, np.float32), []
    for values in given_rounds():
        residual += values
        sent = np.where(residual >= 0.7, 0.7, np.where(residual <= -0.7, -0.7, 0)).astype(np.float32)
        residual -= sent
        expected.append(sent)
    same(sent_rounds("two_bit(threshold=0.7)"), expected)
    assert all(np.array_equal(down, values) for down, values in zip(
        sent_rounds("two_bit(threshold=0.7)", "down"), given_rounds(), strict=True
    ))  # fmt: skip


def test_demo():
    momentum, expected = np.zeros(COUNT), []
    for values in given_rounds():
        momentum = 0.999 * momentum + values
        blocks = np.pad(momentum, (0, -COUNT % 64)).reshape(-1, 64)
        coefficients = top_k(fft.dct(blocks, norm="ortho").ravel(), 0.05)
        expected.append(fft.idct(coefficients.reshape(-1, 64), norm="ortho").ravel()[:COUNT])
        momentum = momentum - expected[-1]
    for one, other in zip(sent_rounds("demo(ratio=0.05)"), expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-4)


def test_the_sum_of_fp16_payloads_is_made_in_fp32():
    contributions = [np.full(COUNT, 1.0, np.float32), np.full(COUNT, 2.0**-12, np.float32)]
    sent = [decode(UNIT, compression("fp16").up().encode(UNIT, each)) for each in contributions]
    np.testing.assert_array_equal(sent[0] + sent[1], np.full(COUNT, 1 + 2.0**-12, np.float32))


def test_half_precision_neither_overflows_nor_vanishes_with_the_units_scale():
    for scale in (2.0**40, 2.0**-40):
        values = given_rounds()[0] * np.float32(scale)
        sent = decode(UNIT, compression("fp16").up().encode(UNIT, values))
        np.testing.assert_allclose(sent, values, rtol=2.0**-10, atol=2.0**-36 * scale)
