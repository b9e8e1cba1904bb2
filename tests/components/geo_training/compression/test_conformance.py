"""One suite over every compression, both ways: what each payload is, on the wire and as it is read."""

import tracemalloc
from dataclasses import replace
from math import ceil

import numpy as np
import pytest
from geokfp.components.geo_training.compression import TECHNIQUES, compression, decode
from geokfp.components.geo_training.errors import FrameError, NotFiniteError, ProtocolError, UsageError
from geokfp.components.geo_training.wire.messages import JOINED, Answer, Payload, encode, read_message
from geokfp.components.geo_training.wire.units import RoundId, Unit
from hypothesis import given
from hypothesis import strategies as st
from support.gradients import SIZES, gradient, gradients, mostly_zero, normal
from support.memory_transport import reader_of

LOSSY = (
    "fp16 + by_size(bound=0)",
    "quantized(bits=8)",
    "quantized(bits=4, chunk=8)",
    "quantized(bits=2)",
    "top_k(ratio=0.1)",
    "top_k(ratio=0.01, bits=2)",
    "top_k(ratio=0.5, bits=8)",
    "top_k(ratio=1, bits=16)",
    "bi_sparse(ratio=0.1, down=lossy)",
    "bi_sparse(ratio=0.02, bits=4, threshold=sampled, down=lossy)",
    "two_bit(threshold=0.25, down=lossy)",
    "demo(ratio=0.1, block=16)",
    "mpq(ratio=0.2, bound=10, down=lossy)",
)
LOSSLESS = ("none", "auto", "none + zstd", "top_k(ratio=1)", "bi_sparse(ratio=1, down=union)")
EVERY = (*LOSSY, *LOSSLESS, *(f"{each} + zstd(level=1)" for each in LOSSY[1:7]))
WAYS = ("up", "down")


def encoder(text: str, way: str):
    sized = text if "by_size" in text or "mpq" in text else f"{text} + by_size(bound=0)"
    return getattr(compression(sized), way)()


def unit_of(values: np.ndarray, key: str = "gradient") -> Unit:
    return Unit(key, 0, values.size)


def frame_of(payload: Payload, unit: Unit) -> bytes:
    answer = Answer(RoundId("tree", unit, 3), 1.0, payload)
    return b"".join(bytes(piece) for piece in encode(answer))


def test_every_technique_is_in_the_suite():
    assert {text.partition("(")[0].partition(" ")[0] for text in EVERY} == set(TECHNIQUES)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("text", EVERY)
@given(gradients)
def test_what_is_read_off_the_wire_is_what_was_encoded(text, way, values):
    unit = unit_of(values)
    payload = encoder(text, way).encode(unit, values)
    frame = frame_of(payload, unit)
    message, num_bytes = read_message(reader_of(frame), JOINED)
    assert num_bytes == len(frame)
    assert message.payload.num_bytes == payload.num_bytes
    assert all(buffer.dtype.str[0] in "<|" for buffer in payload.buffers)
    read = decode(message.round.unit, message.payload)
    assert (read.dtype, read.shape) == (np.float32, values.shape)
    np.testing.assert_array_equal(read, decode(unit, payload))
    assert np.isfinite(read).all()


@pytest.mark.parametrize("text", LOSSLESS)
@pytest.mark.parametrize("way", WAYS)
@given(gradients)
def test_what_loses_nothing_is_the_identity(text, way, values):
    read = decode(unit_of(values), encoder(text, way).encode(unit_of(values), values))
    np.testing.assert_array_equal(read, values)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("text", LOSSY)
@pytest.mark.parametrize("count", [0, 1, 2])
def test_very_small_units(text, way, count):
    values = np.array([3.0, -2.0], np.float32)[:count]
    read = decode(unit_of(values), encoder(text, way).encode(unit_of(values), values))
    assert read.shape == (count,)
    assert count == 0 or (0 < abs(float(read[0])) <= 3.1) or "demo" in text


@pytest.mark.parametrize("text", EVERY)
def test_values_are_left_as_they_are_and_no_payload_shares_their_memory(text):
    values = gradient(normal, 5000, 1)
    before, encoding = values.copy(), encoder(text, "up")
    payloads = [encoding.encode(unit_of(values), values) for _ in range(2)]
    np.testing.assert_array_equal(values, before)
    if text in LOSSY:
        assert not any(np.shares_memory(b, values) for payload in payloads for b in payload.buffers)


@pytest.mark.parametrize("text", LOSSY)
def test_a_payload_does_not_change_when_later_ones_are_made(text):
    encoding, unit = encoder(text, "up"), Unit("gradient", 0, 5000)
    payload = encoding.encode(unit, gradient(normal, 5000, 1))
    before = [buffer.copy() for buffer in payload.buffers]
    encoding.encode(unit, gradient(normal, 5000, 2))
    for buffer, copy in zip(payload.buffers, before, strict=True):
        np.testing.assert_array_equal(buffer, copy)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("text", EVERY)
def test_two_encoders_of_one_choice_write_the_same_bytes_round_by_round(text, way):
    one, other = encoder(text, way), encoder(text, way)
    unit, written = Unit("gradient", 0, 5000), []
    for seed in range(3):
        values = gradient(normal, 5000, seed)
        frames = [frame_of(each.encode(unit, values.copy()), unit) for each in (one, other)]
        assert frames[0] == frames[1]
        written.append(frames[0])
    assert len(set(written)) == 3


@pytest.mark.parametrize("text", EVERY)
def test_every_other_value_of_an_array_is_encoded_as_their_copy_is(text):
    values = gradient(normal, 10_000, 2)[::2]
    unit = unit_of(values)
    strided = decode(unit, encoder(text, "up").encode(unit, values))
    np.testing.assert_array_equal(strided, decode(unit, encoder(text, "up").encode(unit, values.copy())))


@pytest.mark.parametrize("text", LOSSY)
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e38])
@pytest.mark.parametrize("place", [0, 4999])
def test_what_is_not_finite_or_too_large_is_refused_by_what_is_lossy(text, bad, place):
    values = gradient(normal, 5000, 3)
    values[place] = bad
    with pytest.raises(NotFiniteError, match=r"gradient\[0:5000\] holds a magnitude of"):
        encoder(text, "up").encode(unit_of(values), values)


@pytest.mark.parametrize("text", ["none", "none + zstd", "top_k(down=union)", "bi_sparse"])
@pytest.mark.parametrize("num_zeros", [0, 100_000])
def test_what_is_not_finite_passes_down_bit_for_bit_where_nothing_is_lost(text, num_zeros):
    values = np.array([np.nan, np.inf, -np.inf, -0.0, 1e38] * 200 + [0.0] * num_zeros, np.float32)
    read = decode(unit_of(values), encoder(text, "down").encode(unit_of(values), values))
    assert read.tobytes() == values.tobytes()


@pytest.mark.parametrize("text", LOSSY)
def test_fp64_comes_back_as_fp64_and_other_dtypes_are_refused(text):
    values = gradient(normal, 5000, 4)
    unit = unit_of(values)
    wide = decode(unit, encoder(text, "up").encode(unit, values.astype(np.float64)))
    assert wide.dtype == np.float64
    np.testing.assert_array_equal(wide, decode(unit, encoder(text, "up").encode(unit, values)))
    for other in (values.astype(np.float16), values.astype(np.int64), values[:-1], values.reshape(2, -1)):
        with pytest.raises(UsageError, match="lossy compression takes 5000 of"):
            encoder(text, "up").encode(unit, other)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("text", EVERY)
@pytest.mark.parametrize("key", ["weights torch.float32", "numbers", "histogram", "gradients"])
@pytest.mark.parametrize("dtype", ["<f4", "<f8", "<i8"])
def test_other_roles_than_gradients_stay_exact_and_may_be_of_any_number(text, way, key, dtype):
    values = np.arange(3000).astype(dtype)
    unit = Unit(key, 0, 7)
    read = decode(unit, encoder(text, way).encode(unit, values))
    assert read.dtype == values.dtype
    np.testing.assert_array_equal(read, values)


# Bytes ------------------------------------------------------------------------------------------------------


def bytes_of_values(count: int, bits: int, chunk: int = 1024) -> int:
    if bits in (32, 16):
        return count * bits // 8 + (4 if bits == 16 else 0)
    return ceil(count * bits / 8) + 4 + (8 if bits == 2 else 4) * ceil(count / chunk)


def bytes_of_places(count: int, sent: int) -> int:
    return 0 if sent == count else min(ceil(3 * sent / 2), ceil(count / 8))


def sent_of_chunks(count: int, ratio: float) -> int:
    kept, (whole, rest) = ceil(ratio * 4096), divmod(count, 4096)
    return whole * kept + ceil(kept * rest / 4096)


def bytes_of_top_k(count: int, ratio: float, bits: int) -> int:
    sent = sent_of_chunks(count, ratio)
    return 2 * (count > 0) + bytes_of_places(count, sent) + bytes_of_values(sent, bits)


FORMULAS = {
    "none": lambda n: 4 * n,
    "fp16": lambda n: 2 * n + 4,
    "quantized(bits=8)": lambda n: n + 4 + 4 * ceil(n / 1024),
    "quantized(bits=4, chunk=8)": lambda n: ceil(n / 2) + 4 + 4 * ceil(n / 8),
    "quantized(bits=2)": lambda n: ceil(n / 4) + 4 + 8 * ceil(n / 1024),
    "top_k(ratio=0.1)": lambda n: bytes_of_top_k(n, 0.1, 32),
    "top_k(ratio=0.015, bits=2)": lambda n: bytes_of_top_k(n, 0.015, 2),
    "top_k(ratio=0.5, bits=8)": lambda n: bytes_of_top_k(n, 0.5, 8),
    "top_k(ratio=1)": lambda n: 4 * n + 2 * (n > 0),
    "two_bit": lambda n: ceil(n / 4) + 4,
    "demo(ratio=0.1, bits=4, block=64)": lambda n: 2 + bytes_of_top_k(64 * ceil(n / 64), 0.1, 4),
    "demo(ratio=0.1, bits=16, block=16)": lambda n: 2 + bytes_of_top_k(16 * ceil(n / 16), 0.1, 16),
}


@pytest.mark.parametrize("text", FORMULAS)
@pytest.mark.parametrize("count", SIZES)
def test_the_bytes_are_what_the_documents_say(text, count):
    payload = encoder(text, "up").encode(Unit("gradient", 0, count), gradient(normal, count, count))
    assert payload.num_bytes == FORMULAS[text](count)


@pytest.mark.parametrize("count", SIZES[1:])
@pytest.mark.parametrize(("ratio", "bits"), [(0.1, 32), (0.01, 2), (0.4, 16)])
def test_the_bytes_of_bi_sparse_and_of_the_union(count, ratio, bits):
    values, unit = gradient(normal, count, count), Unit("gradient", 0, count)
    sent, chunks = max(1, int(ratio * count)), ceil(count / 4096)
    payload = encoder(f"bi_sparse(ratio={ratio}, bits={bits})", "up").encode(unit, values)
    assert payload.num_bytes == 2 * chunks + bytes_of_places(count, sent) + bytes_of_values(sent, bits)
    read = decode(unit, payload)
    union = encoder("bi_sparse", "down").encode(unit, read)
    sparse = 2 * chunks + bytes_of_places(count, sent) + 4 * np.count_nonzero(read)
    assert np.count_nonzero(read) == sent
    assert union.num_bytes == min(sparse, 4 * count)


def test_two_bits_of_one_value_in_sixty_four_are_near_a_146th_of_fp32():
    payload = encoder("top_k(ratio=0.015625, bits=2)", "up").encode(
        Unit("gradient", 0, 1 << 20), gradient(normal, 1 << 20, 0)
    )
    assert (4 << 20) / payload.num_bytes == pytest.approx(146, rel=0.01)


def test_zstandard_is_left_out_where_it_does_not_pay():
    noise = np.random.default_rng(0).integers(0, 1 << 32, 2000, dtype=np.uint32).view(np.float32)
    unit = unit_of(noise)
    assert encoder("none + zstd", "up").encode(unit, noise).codec == "dense"
    zeros = gradient(mostly_zero, 2000, 0)
    packed = encoder("none + zstd", "up").encode(unit, zeros)
    assert packed.codec == "zstd/dense"
    assert packed.num_bytes < zeros.nbytes / 5


# What a peer may send ---------------------------------------------------------------------------------------


def damaged(payload: Payload):
    """Yields the payload with each buffer shorter, longer, of another dtype, away, and with one more."""
    for index, buffer in enumerate(payload.buffers):
        others = [buffer[:-1], np.append(buffer, buffer[:1]), buffer.view(np.int8)]
        for other in others if buffer.size else []:
            yield replace(payload, buffers=(*payload.buffers[:index], other, *payload.buffers[index + 1 :]))
        yield replace(payload, buffers=payload.buffers[:index] + payload.buffers[index + 1 :])
    yield replace(payload, buffers=(*payload.buffers, np.zeros(3, np.float32)))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("text", [each for each in EVERY if not each.startswith("none")])
@pytest.mark.parametrize("count", [1, 900, 9001])
def test_buffers_of_another_length_or_dtype_are_the_peers_error(text, way, count):
    values = gradient(normal, count, 5)
    payload = encoder(text, way).encode(unit_of(values), values)
    if payload.codec == "dense":
        return  # a union that is not sparse; any count is a dense payload
    for bad in damaged(payload):
        with pytest.raises(ProtocolError):
            decode(unit_of(values), bad)


@pytest.mark.parametrize("text", EVERY)
@given(st.data())
def test_changed_bytes_are_the_peers_error_or_as_many_values(text, data):
    values = gradient(normal, data.draw(st.sampled_from([1, 900, 5000])), 6)
    unit = unit_of(values)
    frame = bytearray(frame_of(encoder(text, "up").encode(unit, values), unit))
    for _ in range(data.draw(st.integers(1, 4))):
        frame[data.draw(st.integers(20, len(frame) - 1))] = data.draw(st.integers(0, 255))
    try:
        message, _ = read_message(reader_of(bytes(frame)), JOINED)
        read = decode(message.round.unit, message.payload)
    except (FrameError, ProtocolError):
        return
    of_any_count = message.payload.codec in ("dense", "zstd/dense")
    assert read is None or of_any_count or read.size == message.round.unit.count


@pytest.mark.parametrize("text", [each for each in EVERY if not each.startswith("none")])
@pytest.mark.parametrize("count", [1 << 28, 1 << 60])
def test_a_unit_that_claims_many_values_makes_us_allocate_little(text, count):
    values = gradient(normal, 5000, 7)
    payload = encoder(text, "up").encode(unit_of(values), values)
    tracemalloc.start()
    try:
        with pytest.raises(ProtocolError):
            decode(Unit("gradient", 0, count), payload)
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "codec",
    ["zip", "dense/dense", "fp16/dense", "sparse", "sparse/", "/", "zstd/zip", "cosine", "sparse/absent"],
)
def test_a_codec_that_is_not_known_is_the_peers_error(codec):
    values = gradient(normal, 5000, 8)
    buffers = encoder("top_k(ratio=0.1)", "up").encode(unit_of(values), values).buffers
    with pytest.raises(ProtocolError):
        decode(unit_of(values), Payload(codec, "<f4", buffers))


@pytest.mark.parametrize("dtype", ["<f2", "<i4", "|u1"])
@pytest.mark.parametrize("text", LOSSY)
def test_a_lossy_payload_of_other_numbers_is_the_peers_error(text, dtype):
    values = gradient(normal, 900, 9)
    payload = encoder(text, "up").encode(unit_of(values), values)
    with pytest.raises(ProtocolError, match="is needed"):
        decode(unit_of(values), replace(payload, dtype=dtype))
