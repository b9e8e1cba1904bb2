"""Chunked top-k: of each 4096 values the largest magnitudes, with 12-bit places.

Bytes of n values, k of each chunk, z in all: 2 + ceil(3z / 2) + those of z values by their codec (`sparse`).
Source: Stich et al., *Sparsified SGD with Memory*, NeurIPS 2018; chunks, 12-bit places and 2-bit values as in
Sarfi et al., *Communication Efficient LLM Pre-training with SparseLoCo*, 2025.
"""

from dataclasses import dataclass
from math import ceil

from ..wire.messages import Array, Payload
from ..wire.units import Unit
from . import sparse
from .base import Compressor
from .floats import as_float32, wire_dtype
from .selection import largest_per_chunk


@dataclass(frozen=True, slots=True)
class ChunkedTopK:
    """The same number of values of each chunk; see `sparse` for the buffers.

    Attributes:
        ratio: share of the values that is sent, above 0; at 1 all are.
        values: encodes those that are sent.
    """

    ratio: float
    values: Compressor

    @property
    def kept(self) -> int:
        """Values sent of a whole chunk."""
        return ceil(self.ratio * sparse.CHUNK)

    def encode(self, unit: Unit, values: Array) -> Payload:
        """See `Compressor`."""
        floats = as_float32(unit, values)
        indices = largest_per_chunk(unit, floats, sparse.CHUNK, self.kept)
        dtype = wire_dtype(values)
        return sparse.write(unit, indices, floats[indices], self.values, dtype)
