"""The wire form of some values and their places, for every technique that sends only some.

Buffers, for n values of which z are sent, in chunks of 4096 values::

    counts  uint16  values sent of each chunk; a single number k when there are several chunks and each sends
                    k, a shorter last one ceil(k * values / 4096)
    places  bytes   nothing when z = n; else the smaller of: 12 bits a value sent, its place in its chunk,
                    ascending, two in three bytes; or a bit for each of the n, the first in the lowest bit
    ...             the buffers of the z values, in ascending place, by a codec of their own

A place is its chunk's number and 12 bits, so that it is exact for any n.
"""

import numpy as np

from ..errors import ProtocolError
from ..wire.messages import Array, Payload
from ..wire.units import Unit
from .base import Compressor, Decoder
from .bits import pack, packed_size, unpack
from .chunks import num_chunks
from .floats import restored
from .selection import share

NAME = "sparse"
CHUNK = 4096
_PLACE_BITS = 12


def write(unit: Unit, indices: Array, values: Array, codec: Compressor, dtype: str) -> Payload:
    """Returns the payload of some values of a unit.

    Args:
        unit: what all the values are.
        indices: ascending places of those that are sent, int64.
        values: those that are sent.
        codec: encodes them.
        dtype: of the values when decoded.
    """
    counts = _short(np.bincount(indices // CHUNK, minlength=num_chunks(unit.count, CHUNK)), unit.count)
    inner = codec.encode(Unit(unit.key, unit.offset, indices.size), values)
    buffers = (counts.astype("<u2"), _places(indices, unit.count), *inner.buffers)
    return Payload(f"{NAME}/{inner.codec}", dtype, buffers)


def read(unit: Unit, payload: Payload, decode: Decoder) -> Array:
    """See `Decoder`; `payload` names the codec of the values, which `decode` knows."""
    if len(payload.buffers) < 2 or payload.buffers[0].dtype != np.dtype("<u2"):
        raise ProtocolError(f"a sparse payload of {unit.key} needs counts, places and values")
    counts = _all_counts(payload.buffers[0].astype(np.int64), unit.count)
    values = _values(unit, payload, int(counts.sum()), decode)
    if values.size == unit.count:
        if payload.buffers[1].size:
            raise ProtocolError(f"places of {unit.count} values of which all are sent")
        return restored(values, payload.dtype)
    indices = _indices(payload.buffers[1], counts, unit.count)
    dense = np.zeros(unit.count, np.float32)
    dense[indices] = values
    return restored(dense, payload.dtype)


def sent_values(unit: Unit, written: Payload, num_sent: int, decode: Decoder) -> Array:
    """Returns the values in a payload of `write`, as they will be decoded, in ascending place."""
    inner = written.codec.removeprefix(f"{NAME}/")
    return _values(unit, Payload(inner, written.dtype, written.buffers), num_sent, decode)


def _values(unit: Unit, payload: Payload, num_sent: int, decode: Decoder) -> Array:
    of_values = Unit(unit.key, unit.offset, num_sent)
    values = decode(of_values, Payload(payload.codec, "<f4", payload.buffers[2:]))
    if values.dtype != np.float32 or values.size != num_sent:
        raise ProtocolError(f"{values.size} values of {values.dtype} for {num_sent} places")
    return values


def _lengths(count: int) -> Array:
    """Returns the values of each chunk."""
    lengths = np.full(num_chunks(count, CHUNK), CHUNK, np.int64)
    if count % CHUNK:
        lengths[-1] = count % CHUNK
    return lengths


def _alike(kept: int, count: int) -> Array:
    """Returns the counts of chunks that each send `kept`."""
    counts = np.full(num_chunks(count, CHUNK), kept, np.int64)
    if count % CHUNK:
        counts[-1] = share(kept, CHUNK, count % CHUNK)
    return counts


def _short(counts: Array, count: int) -> Array:
    alike = counts.size > 1 and np.array_equal(counts, _alike(int(counts[0]), count))
    return counts[:1] if alike else counts


def _all_counts(sent: Array, count: int) -> Array:
    counts = _alike(int(sent[0]), count) if sent.size == 1 and count > CHUNK else sent
    lengths = _lengths(count)
    if counts.size != lengths.size or (counts > lengths).any():
        raise ProtocolError(f"counts of {counts.size} chunks do not fit {count} values")
    return counts


def _places(indices: Array, count: int) -> Array:
    if indices.size == count:
        return np.empty(0, np.uint8)
    if _is_bitmap(indices.size, count):
        mask = np.zeros(count, bool)
        mask[indices] = True
        return np.packbits(mask, bitorder="little")
    return pack((indices % CHUNK).astype(np.uint16), _PLACE_BITS)


def _indices(places: Array, counts: Array, count: int) -> Array:
    """Returns the places of the values sent, int64, ascending."""
    num_sent = int(counts.sum())
    indices: Array
    if _is_bitmap(num_sent, count):
        if places.dtype != np.uint8 or places.size != packed_size(count, 1):
            raise ProtocolError(f"a bitmap of {places.size} of {places.dtype} for {count} values")
        indices = np.flatnonzero(np.unpackbits(places, bitorder="little"))
    else:
        in_chunks = unpack(places, _PLACE_BITS, num_sent)
        indices = np.repeat(np.arange(counts.size) * CHUNK, counts) + in_chunks
    ascend = bool((np.diff(indices) > 0).all())
    within = not indices.size or int(indices[-1]) < count
    found = np.bincount(indices // CHUNK, minlength=counts.size)
    if not ascend or not within or not np.array_equal(found, counts):
        raise ProtocolError(f"places do not ascend, or are not within {count} values as counted")
    return indices


def _is_bitmap(num_sent: int, count: int) -> bool:
    return packed_size(count, 1) < packed_size(num_sent, _PLACE_BITS)
