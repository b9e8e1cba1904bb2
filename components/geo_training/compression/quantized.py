"""Quantisation to 8, 4 or 2 bits a value, with scales for each chunk of values.

8 and 4 bits: 255 or 15 even levels from minus to plus the chunk's largest magnitude, zero among them. 2
bits: a sign and one of two magnitudes, the centroids of the chunk's own (Lloyd, *Least Squares Quantization
in PCM*, 1982). Rounding is to the nearest. Sums are made in FP32, of the decoded values.

Bytes of n values in chunks of c: ceil(n * bits / 8) + 4 + s * ceil(n / c), where s is 4, and 8 for 2 bits.
Source: Dettmers, *8-Bit Approximations for Parallelism in Deep Learning*, ICLR 2016; 2 bits for what is
sparse: Sarfi et al., *Communication Efficient LLM Pre-training with SparseLoCo*, 2025.
"""

from dataclasses import dataclass

import numpy as np

from ..errors import ProtocolError
from ..wire.messages import Array, Payload
from ..wire.units import Unit
from .bits import pack, unpack
from .chunks import num_chunks, rows_of
from .floats import LARGEST, as_float32, refuse_beyond, restored, wire_dtype

NAME = "quantized"
CHUNK = 1024
LARGEST_CHUNK = 65535
BITS = (8, 4, 2)
_SMALLEST = 2.0**-100
"""Chunks without a larger magnitude become zeros: dividing by theirs would leave FP32."""
_ROUNDS_OF_MEANS = 2


@dataclass(frozen=True, slots=True)
class Quantized:
    """Buffers: bits and values in a chunk, uint16; scales, FP32; the packed codes.

    Attributes:
        bits: of a value.
        chunk: values that share scales.
    """

    bits: int
    chunk: int = CHUNK

    def encode(self, unit: Unit, values: Array) -> Payload:
        """See `Compressor`."""
        floats = as_float32(unit, values)
        codes = np.empty(floats.size, np.uint8)
        scales = np.empty((num_chunks(floats.size, self.chunk), _num_scales(self.bits)), "<f4")
        for (first, rows), (_, out) in zip(
            rows_of(floats, self.chunk), rows_of(codes, self.chunk), strict=True
        ):
            magnitudes = np.abs(rows)
            tops = magnitudes.max(axis=1)
            refuse_beyond(unit, float(tops.max()))
            of_rows = scales[first : first + len(rows)]
            if self.bits == 2:
                of_rows[:] = _two_means(magnitudes)
                out[:] = _nearer(magnitudes, of_rows) | np.signbit(rows) << np.uint8(1)
            else:
                of_rows[:, 0] = np.where(tops < _SMALLEST, 0, tops)
                out[:] = _level_codes(rows, of_rows, _levels(self.bits))
        shape = np.array([self.bits, self.chunk], "<u2")
        buffers = (shape, scales.ravel(), pack(codes, self.bits))
        return Payload(NAME, wire_dtype(values), buffers)


def read(unit: Unit, payload: Payload) -> Array:
    """See `Decoder`."""
    if [buffer.dtype.str for buffer in payload.buffers] != ["<u2", "<f4", "|u1"]:
        raise ProtocolError(f"a quantised payload of {unit.key} needs its shape, scales and codes")
    bits, chunk = _shape(payload.buffers[0])
    scales = _scales(payload.buffers[1], num_chunks(unit.count, chunk), _num_scales(bits))
    codes = unpack(payload.buffers[2], bits, unit.count)
    if bits != 2 and codes.max(initial=0) > 2 * _levels(bits):
        raise ProtocolError(f"a quantised payload of {unit.key} holds a code beyond its levels")
    values = np.empty(unit.count, np.float32)
    for (first, rows), (_, of_rows) in zip(rows_of(values, chunk), rows_of(codes, chunk), strict=True):
        scales_of_rows = scales[first : first + len(rows)]
        if bits == 2:
            rows[:] = np.where(of_rows & 1, scales_of_rows[:, 1:], scales_of_rows[:, :1])
            np.negative(rows, out=rows, where=of_rows > 1)
        else:
            levels = _levels(bits)
            np.subtract(of_rows, np.float32(levels), out=rows)
            rows *= scales_of_rows / np.float32(levels)
    return restored(values, payload.dtype)


def _levels(bits: int) -> int:
    """Returns the levels above zero; there are as many below."""
    return int(2 ** (bits - 1)) - 1


def _num_scales(bits: int) -> int:
    return 2 if bits == 2 else 1


def _level_codes(rows: Array, tops: Array, levels: int) -> Array:
    factors = np.divide(np.float32(levels), tops, out=np.zeros_like(tops), where=tops > 0)
    scaled = rows * factors
    np.rint(scaled, out=scaled)
    scaled += np.float32(levels)
    codes: Array = scaled.astype(np.uint8)
    return codes


def _two_means(magnitudes: Array) -> Array:
    """Returns the lower and the higher centroid of each row, shape (rows, 2)."""
    width = magnitudes.shape[1]
    totals = magnitudes.sum(axis=1, dtype=np.float64)
    lows = highs = totals / width
    for _ in range(_ROUNDS_OF_MEANS):
        is_high = magnitudes > ((lows + highs) / 2).astype(np.float32)[:, None]
        num_high = np.count_nonzero(is_high, axis=1)
        of_high = np.multiply(magnitudes, is_high).sum(axis=1, dtype=np.float64)
        lows = np.maximum(totals - of_high, 0) / np.maximum(width - num_high, 1)
        highs = np.where(num_high, of_high / np.maximum(num_high, 1), lows)
    return np.stack([lows, highs], axis=1)


def _nearer(magnitudes: Array, centroids: Array) -> Array:
    """Returns 1 where the higher centroid is the nearer one."""
    is_high: Array = magnitudes > centroids.mean(axis=1, keepdims=True)
    return is_high.astype(np.uint8)


def _shape(buffer: Array) -> tuple[int, int]:
    if buffer.size != 2 or buffer[0] not in BITS or not buffer[1]:
        raise ProtocolError(f"quantised to {buffer[:2].tolist()}: bits of {BITS} and a chunk are needed")
    return int(buffer[0]), int(buffer[1])


def _scales(buffer: Array, num_rows: int, num_scales: int) -> Array:
    if buffer.size != num_rows * num_scales:
        raise ProtocolError(f"{buffer.size} scales for {num_rows} chunks of {num_scales}")
    if not ((buffer >= 0) & (buffer < LARGEST)).all():
        raise ProtocolError("a scale that is not finite, negative or too large")
    return buffer.reshape(num_rows, num_scales)
