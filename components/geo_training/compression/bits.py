"""Codes of 2, 4, 8 and 12 bits as bytes and back, the first in the lowest bits. Knows nothing of codecs."""

from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np

from ..errors import ProtocolError
from ..wire.messages import Array

_WORDS: Mapping[int, np.dtype[Any]] = {2: np.dtype("<u4"), 4: np.dtype("<u2")}
"""The word whose bytes hold the codes of one packed byte."""


def packed_size(count: int, bits: int) -> int:
    """Returns the bytes of so many codes: `ceil(count * bits / 8)`."""
    return -(-count * bits // 8)


def pack(codes: Array, bits: int) -> Array:
    """Returns `packed_size` bytes; for 8 bits the codes themselves.

    Args:
        codes: one-dimensional, each below `2**bits`; uint16 for 12 bits, else uint8.
        bits: 2, 4, 8 or 12.
    """
    if bits == 8:
        return codes
    return _packed_pairs(codes) if bits == 12 else _packed_words(codes, bits)


def unpack(packed: Array, bits: int, count: int) -> Array:
    """Returns `count` codes.

    Raises:
        ProtocolError: these are not `packed_size` bytes, or a bit behind the last code is set.
    """
    if packed.dtype != np.uint8 or packed.size != packed_size(count, bits):
        raise ProtocolError(f"{count} codes of {bits} bits in {packed.size} of {packed.dtype}")
    if bits == 8:
        return packed
    codes = _unpacked_pairs(packed) if bits == 12 else _codes_of_bytes(bits)[packed].view(np.uint8)
    if codes[count:].any():
        raise ProtocolError(f"bits behind {count} codes of {bits} bits")
    return codes[:count]


def _packed_pairs(codes: Array) -> Array:
    pairs = _padded(codes, 2).reshape(-1, 2)
    packed = np.empty((len(pairs), 3), np.uint8)
    packed[:, 0] = pairs[:, 0] & 255
    packed[:, 1] = (pairs[:, 0] >> 8) | (pairs[:, 1] & 15) << 4
    packed[:, 2] = pairs[:, 1] >> 4
    return packed.reshape(-1)[: packed_size(codes.size, 12)]


def _unpacked_pairs(packed: Array) -> Array:
    triples = _padded(packed, 3).reshape(-1, 3).astype(np.uint16)
    codes = np.empty((len(triples), 2), np.uint16)
    codes[:, 0] = triples[:, 0] | (triples[:, 1] & 15) << 8
    codes[:, 1] = (triples[:, 1] >> 4) | triples[:, 2] << 4
    return codes.reshape(-1)


def _packed_words(codes: Array, bits: int) -> Array:
    words = _padded(codes, 8 // bits).view(_WORDS[bits])
    gathered = words.copy()
    for step in range(1, 8 // bits):
        gathered |= words >> words.dtype.type(step * (8 - bits))
    return gathered.astype(np.uint8)


@cache
def _codes_of_bytes(bits: int) -> Array:
    """Returns for each byte the word that holds its codes, a byte each."""
    codes = (np.arange(256)[:, None] >> np.arange(0, 8, bits)) & ((1 << bits) - 1)
    return codes.astype(np.uint8).view(_WORDS[bits]).reshape(-1)


def _padded(codes: Array, multiple: int) -> Array:
    missing = -codes.size % multiple
    return np.concatenate([codes, np.zeros(missing, codes.dtype)]) if missing else np.ascontiguousarray(codes)
