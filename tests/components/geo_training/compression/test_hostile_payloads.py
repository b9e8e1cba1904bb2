"""Payloads that no honest peer sends: values or the peer's error come of them, within bounds of memory."""

import tracemalloc
from collections.abc import Iterator

import numpy as np
import pytest
from geokfp.components.geo_training.compression import TECHNIQUES, compression, decode
from geokfp.components.geo_training.errors import ProtocolError
from geokfp.components.geo_training.wire.messages import Payload
from geokfp.components.geo_training.wire.units import Unit

TEXTS = (
    "none",
    "none + zstd",
    "fp16 + by_size(bound=0)",
    "quantized(bits=8) + by_size(bound=0)",
    "quantized(bits=4, chunk=8) + by_size(bound=0)",
    "quantized(bits=2) + by_size(bound=0) + zstd",
    "top_k(ratio=0.1) + by_size(bound=0)",
    "top_k(ratio=0.01, bits=2) + by_size(bound=0) + zstd",
    "bi_sparse(ratio=0.02, bits=4) + by_size(bound=0)",
    "mpq(ratio=0.2, bound=10)",
    "two_bit(threshold=0.25) + by_size(bound=0)",
    "demo(ratio=0.1, block=16) + by_size(bound=0)",
    "demo(ratio=0.1, bits=2) + by_size(bound=0) + zstd",
    "auto + by_size(bound=0)",
)
SIZES = (1, 5, 4096, 9001)
DTYPES = ("<f2", "<f4", "<f8", "|i1", "|u1", "<u2", "<i4", "<u4", "<i8")
CODECS = ("dense", "fp16", "quantized", "two_bit", "sparse", "cosine", "zstd", "absent", "")
FREE_BYTES = 24 << 20
"""A cosine transform, and what Python itself needs."""
BYTES_A_VALUE = 256


def honest(text: str) -> Iterator[tuple[Unit, Payload]]:
    for size in SIZES:
        for way in ("up", "down"):
            values = np.random.default_rng(size).normal(size=size).astype(np.float32)
            values[: size // 2] = 0
            unit = Unit("gradient w", 0, size)
            yield unit, getattr(compression(text), way)().encode(unit, values)


def mutated(payload: Payload, draw: np.random.Generator) -> Payload:
    buffers, codec, dtype = [b.copy() for b in payload.buffers], payload.codec, payload.dtype
    for _ in range(draw.integers(1, 4)):
        which = int(draw.integers(len(buffers))) if buffers else 0
        match draw.integers(9):
            case 0 | 1 | 2 if buffers and buffers[which].size:
                flipped = np.ascontiguousarray(buffers[which]).view(np.uint8).copy()
                flipped[draw.integers(flipped.size)] ^= np.uint8(1 << draw.integers(8))
                buffers[which] = flipped.view(buffers[which].dtype)
            case 3 if buffers:
                buffers[which] = buffers[which][: draw.integers(buffers[which].size + 1)]
            case 4 if buffers:
                buffers[which] = np.resize(buffers[which], int(draw.integers(1, 6000)))
            case 5 if buffers:
                size = int(draw.integers(0, 300))
                other = draw.bytes(size * 8)
                buffers[which] = np.frombuffer(other, DTYPES[draw.integers(len(DTYPES))])[:size]
            case 6:
                del buffers[which : which + 1]
            case 7:
                path = [*codec.split("/"), CODECS[draw.integers(len(CODECS))]]
                codec = "/".join(draw.permutation(path)[: draw.integers(1, len(path) + 1)])
            case _:
                dtype = DTYPES[draw.integers(len(DTYPES))]
    return Payload(codec, dtype, tuple(buffers))


def check_decodes_or_refuses(unit: Unit, payload: Payload) -> bool:
    """Returns whether values came of it."""
    tracemalloc.reset_peak()
    before, _ = tracemalloc.get_traced_memory()
    try:
        values = decode(unit, payload)
    except ProtocolError:
        values = None
    _, peak = tracemalloc.get_traced_memory()
    allowed = FREE_BYTES + BYTES_A_VALUE * unit.count + 4 * payload.num_bytes
    assert peak - before <= allowed, (unit, payload.codec)
    if values is not None:
        assert values.ndim == 1
    return values is not None


def check_mutations(text: str, number: int) -> None:
    draw = np.random.default_rng(number)
    pairs = list(honest(text))
    tracemalloc.start()
    try:
        decoded = sum(
            check_decodes_or_refuses(unit, mutated(payload, draw))
            for unit, payload in (pairs[draw.integers(len(pairs))] for _ in range(number))
        )
    finally:
        tracemalloc.stop()
    assert 0 < decoded < number


def test_all_techniques_are_mutated():
    assert {text.partition("(")[0].partition(" ")[0] for text in TEXTS} == set(TECHNIQUES)


@pytest.mark.parametrize("text", TEXTS)
def test_mutated_payloads_are_values_or_the_peers_error(text):
    check_mutations(text, 400)


@pytest.mark.long
@pytest.mark.parametrize("text", TEXTS)
def test_many_mutated_payloads_are_values_or_the_peers_error(text):
    check_mutations(text, 20_000)


@pytest.mark.parametrize("codec", ["zstd/" * 50 + "dense", "cosine/cosine/cosine/cosine/dense"])
def test_codecs_are_not_nested_without_end(codec):
    with pytest.raises(ProtocolError, match="more than 3 around another"):
        decode(Unit("gradient", 0, 8), Payload(codec, "<f4", ()))


def test_few_bytes_do_not_claim_many_values():
    with pytest.raises(ProtocolError, match="values of gradient, at most 33554432 are decoded"):
        decode(Unit("gradient", 0, 1 << 26), Payload("sparse/dense", "<f4", ()))
