"""DeMo: the largest coefficients of the values' cosine transform, block by block.

The transform is the orthonormal DCT-II of each block, a product with one matrix; coefficients go through a
compressor of their own (chunked top-k: 4096 coefficients, that is 64 blocks of 64, share their k). With error
feedback of decay b this is DeMo's m <- b m + g; q = top-k of DCT(m); m <- m - IDCT(q).

Bytes of n values: 2 + those of block * ceil(n / block) coefficients. Source: Peng et al., *DeMo: Decoupled
Momentum Optimization*, 2024.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ..errors import ProtocolError
from ..wire.messages import Array, Payload
from ..wire.units import Unit
from .base import Compressor, Decoder
from .chunks import num_chunks, rows_of
from .floats import as_float32, checked_magnitude, restored, wire_dtype

NAME = "cosine"
LARGEST_BLOCK = 1024
"""Its transform takes 4 MiB, and whose blocks are large may be the peer's choice."""


@dataclass(frozen=True, slots=True)
class Cosine:
    """Buffers: values in a block, uint16; those of the coefficients.

    Attributes:
        block: values transformed together; the last ones are filled up with zeros.
        coefficients: encodes the coefficients.
    """

    block: int
    coefficients: Compressor

    def encode(self, unit: Unit, values: Array) -> Payload:
        """See `Compressor`."""
        floats = as_float32(unit, values)
        coefficients = np.zeros(num_chunks(floats.size, self.block) * self.block, np.float32)
        checked_magnitude(unit, floats)
        with np.errstate(over="ignore"):  # refused where coefficients are selected
            for first, rows in rows_of(floats, self.block):
                start = first * self.block
                out = coefficients[start : start + len(rows) * self.block].reshape(len(rows), self.block)
                np.matmul(rows, _transform(self.block)[:, : rows.shape[1]].T, out=out)
        inner = self.coefficients.encode(Unit(unit.key, unit.offset, coefficients.size), coefficients)
        buffers = (np.array([self.block], "<u2"), *inner.buffers)
        return Payload(f"{NAME}/{inner.codec}", wire_dtype(values), buffers)


def read(unit: Unit, payload: Payload, decode: Decoder) -> Array:
    """See `Decoder`; `payload` names the codec of the coefficients, which `decode` knows."""
    shape = payload.buffers[0] if payload.buffers else np.empty(0)
    if shape.dtype != np.dtype("<u2") or shape.size != 1 or not 0 < shape[0] <= LARGEST_BLOCK:
        raise ProtocolError(f"a cosine payload of {unit.key} needs a block of 1 to {LARGEST_BLOCK} values")
    block = int(shape[0])
    count = num_chunks(unit.count, block) * block
    inner = Payload(payload.codec, "<f4", payload.buffers[1:])
    coefficients = decode(Unit(unit.key, unit.offset, count), inner)
    if coefficients.dtype != np.float32 or coefficients.size != count:
        raise ProtocolError(f"{coefficients.size} coefficients of {coefficients.dtype}, {count} are needed")
    values = np.empty(count, np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        for (_, rows), (_, out) in zip(rows_of(coefficients, block), rows_of(values, block), strict=True):
            np.matmul(rows, _transform(block), out=out)
    return restored(values[: unit.count], payload.dtype)


@lru_cache(maxsize=4)
def _transform(block: int) -> Array:
    """Returns the matrix of the orthonormal DCT-II, shape (block, block): one row a frequency."""
    places = (2 * np.arange(block) + 1) * np.pi / (2 * block)
    matrix: Array = np.cos(np.arange(block)[:, None] * places) * np.sqrt(2 / block)
    matrix[0] *= np.sqrt(0.5)
    return matrix.astype(np.float32)
