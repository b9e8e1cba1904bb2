"""Packed codes, and places of values: exact for any number of values."""

import numpy as np
import pytest
from geokfp.components.geo_training.compression import compression, decode
from geokfp.components.geo_training.compression.bits import pack, packed_size, unpack
from geokfp.components.geo_training.compression.dense import Dense
from geokfp.components.geo_training.compression.sparse import write
from geokfp.components.geo_training.errors import ProtocolError
from geokfp.components.geo_training.wire.messages import Payload
from geokfp.components.geo_training.wire.units import Unit
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

WIDTHS = st.sampled_from([2, 4, 8, 12])


def codes_of(bits: int):
    dtype = np.uint16 if bits == 12 else np.uint8
    codes = hnp.arrays(dtype, st.integers(0, 30), elements=st.integers(0, 2**bits - 1))
    return st.tuples(st.just(bits), codes)


@given(WIDTHS.flatmap(codes_of))
def test_codes_are_bits_one_after_the_other_and_come_back(case):
    bits, codes = case
    packed = pack(codes, bits)
    as_one_number = sum(int(code) << bits * place for place, code in enumerate(codes))
    assert packed.tobytes() == as_one_number.to_bytes(packed_size(codes.size, bits), "little")
    np.testing.assert_array_equal(unpack(packed, bits, codes.size), codes)


@pytest.mark.parametrize("bits", [2, 4, 12])
def test_bits_behind_the_last_code_and_other_lengths_are_the_peers_error(bits):
    packed = pack(np.zeros(3, np.uint16 if bits == 12 else np.uint8), bits)
    packed[-1] |= 0x80
    with pytest.raises(ProtocolError, match="bits behind 3"):
        unpack(packed, bits, 3)
    with pytest.raises(ProtocolError, match="codes of"):
        unpack(packed, bits, 9)


@given(st.integers(1, 9001).flatmap(lambda n: st.tuples(st.just(n), st.sets(st.integers(0, n - 1)))))
def test_any_places_of_any_number_of_values_come_back(case):
    count, places = case
    unit, indices = Unit("gradient", 0, count), np.array(sorted(places), np.int64)
    expected = np.zeros(count, np.float32)
    expected[indices] = np.arange(1, 1 + indices.size)
    payload = write(unit, indices, expected[indices], Dense(), "<f4")
    np.testing.assert_array_equal(decode(unit, payload), expected)


@pytest.mark.parametrize(
    ("counts", "places", "count"),
    [
        ([2], [5, 5], 4096),
        ([2], [6, 5], 4096),
        ([2, 0], [5, 6], 4096),
        ([2], [5, 100], 100),
        ([1, 1], [5, 100], 4196),
        ([4097], [5, 6], 4096),
        ([1], [5, 6], 8192 + 4096),
        ([], [5, 6], 4096),
        ([65535], [5, 6], 8192),
    ],
)
def test_places_that_do_not_ascend_or_fit_are_the_peers_error(counts, places, count):
    buffers = (np.array(counts, "<u2"), pack(np.array(places, np.uint16), 12), np.ones(2, "<f4"))
    with pytest.raises(ProtocolError):
        decode(Unit("gradient", 0, count), Payload("sparse/dense", "<f4", buffers))


def test_a_bitmap_counts_what_the_counts_say():
    unit, values = Unit("gradient", 0, 4096), np.arange(1, 4097, dtype=np.float32)
    values[::2] = 0
    payload = write(unit, np.flatnonzero(values), values[1::2], Dense(), "<f4")
    counts, bitmap, ones = payload.buffers
    assert bitmap.size == 512
    np.testing.assert_array_equal(decode(unit, payload), values)
    bitmap[0] ^= 3
    decode(unit, payload)
    bitmap[0] ^= 1
    with pytest.raises(ProtocolError, match="as counted"):
        decode(unit, Payload(payload.codec, "<f4", (counts, bitmap, ones)))


@pytest.mark.parametrize(("text", "way"), [
    ("top_k(ratio=0.002)", "up"),
    ("bi_sparse(ratio=1e-6)", "up"),
    ("bi_sparse(ratio=1e-6, threshold=sampled)", "up"),
    ("bi_sparse", "down"),
])  # fmt: skip
def test_places_are_right_beyond_the_integers_of_fp32(text, way):
    count = (1 << 24) + 5001
    values = np.zeros(count, np.float32)
    places = [3, (1 << 24) - 1, (1 << 24) + 1, (1 << 24) + 4097, count - 2]
    values[places] = [1.0, -2.0, 3.0, -4.0, 5.0]
    unit = Unit("gradient", 0, count)
    read = decode(unit, getattr(compression(text), way)().encode(unit, values))
    np.testing.assert_array_equal(np.flatnonzero(read), places)
    np.testing.assert_array_equal(read[places], values[places])
