"""Which values are sent: the largest magnitudes, always an exact number of them at most.

Of equal magnitudes the first ones are taken. All indices are int64, ascending.
"""

import numpy as np

from ..wire.messages import Array
from ..wire.units import Unit
from .chunks import rows_of
from .floats import magnitude_bits, refuse_bits_beyond


def largest_per_chunk(unit: Unit, values: Array, chunk: int, kept: int) -> Array:
    """Returns the indices of the `kept` largest values of each chunk.

    A shorter last chunk gives its share, rounded up.

    Args:
        unit: what the values are, for errors.
        values: contiguous FP32.
        chunk: values in a chunk.
        kept: values taken of a chunk, 1 to `chunk`.

    Raises:
        NotFiniteError: a value is not finite, or too large.
    """
    found = [np.empty(0, np.int64)]
    for first, rows in rows_of(values, chunk):
        width = rows.shape[1]
        mask = _largest_in_rows(unit, magnitude_bits(rows), share(kept, chunk, width))
        found.append(np.flatnonzero(mask) + first * chunk)
    return np.concatenate(found)


def share(kept: int, chunk: int, width: int) -> int:
    """Returns how many values of a chunk with only `width` values are taken."""
    return -(-kept * width // chunk)


def largest(unit: Unit, values: Array, kept: int, floor: float = 0.0) -> Array:
    """Returns the indices of the `kept` largest values, fewer where fewer are non-zero and reach `floor`.

    Args:
        unit: what the values are, for errors.
        values: contiguous FP32.
        kept: values taken at most.
        floor: magnitude that a value must reach.

    Raises:
        NotFiniteError: a value is not finite, or too large.
    """
    bits = magnitude_bits(values)
    refuse_bits_beyond(unit, int(bits.max(initial=0)))
    lowest = max(1, int(np.float32(floor).view(np.uint32)))
    if kept >= values.size or floor:
        candidates: Array = np.flatnonzero(bits >= lowest)
        if candidates.size <= kept:
            return candidates
        candidates = candidates[_largest_in_rows(unit, bits[candidates][None], kept)[0]]
        return candidates
    mask = _largest_in_rows(unit, bits[None], kept)[0]
    return np.flatnonzero(mask & (bits > 0))


def _largest_in_rows(unit: Unit, bits: Array, kept: int) -> Array:
    """Returns a mask of shape (rows, width) with `kept` true values in each row."""
    cut = bits.shape[1] - kept
    if not cut:
        refuse_bits_beyond(unit, int(bits.max(initial=0)))
        return np.ones(bits.shape, bool)
    top = np.partition(bits, cut, axis=1)[:, cut:]
    refuse_bits_beyond(unit, int(top.max(initial=0)))
    floors = top[:, :1]
    mask: Array = bits >= floors
    if np.count_nonzero(mask) > kept * len(bits):
        tied = np.flatnonzero(np.count_nonzero(mask, axis=1) > kept)
        mask[tied] = _without_surplus(bits[tied], floors[tied], kept)
    return mask


def _without_surplus(bits: Array, floors: Array, kept: int) -> Array:
    above, equal = bits > floors, bits == floors
    wanted = kept - np.count_nonzero(above, axis=1, keepdims=True)
    mask: Array = above | (equal & (np.cumsum(equal, axis=1, dtype=np.int64) <= wanted))
    return mask
