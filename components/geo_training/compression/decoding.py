"""Reading a payload by the names of its codecs, whoever encoded it; without state.

A codec that holds another is named as a path: `sparse/quantized` has the places of `sparse`, and values that
`quantized` reads.
"""

from collections.abc import Callable, Mapping

from ..errors import ProtocolError
from ..wire.messages import ABSENT, Array, Payload
from ..wire.units import Unit
from . import demo, dense, fp16, quantized, sparse, two_bit, zstd
from .base import Decoder

MOST_VALUES = 1 << 25
"""A unit of more (128 MiB of FP32) is refused: some codecs need few bytes for many values."""
_MOST_WRAPPERS = 3
"""Codecs around another that any technique uses; each may claim memory of its own."""

_LEAVES: Mapping[str, Decoder] = {
    dense.NAME: dense.read,
    fp16.NAME: fp16.read,
    quantized.NAME: quantized.read,
    two_bit.NAME: two_bit.read,
}
_WRAPPERS: Mapping[str, Callable[[Unit, Payload, Decoder], Array]] = {
    demo.NAME: demo.read,
    sparse.NAME: sparse.read,
    zstd.NAME: zstd.read,
}


def decode(unit: Unit, payload: Payload) -> Array | None:
    """Returns the values of a payload; None when it brings none.

    Raises:
        ProtocolError: the codec is not known, or the buffers are not what it writes.
    """
    return None if payload.codec == ABSENT else decode_values(unit, payload)


def decode_values(unit: Unit, payload: Payload) -> Array:
    """Returns the values of a payload that brings some.

    Raises:
        ProtocolError: see `decode`.
    """
    if unit.count > MOST_VALUES:
        raise ProtocolError(f"{unit.count} values of {unit.key}, at most {MOST_VALUES} are decoded")
    if payload.codec.count("/") > _MOST_WRAPPERS:
        raise ProtocolError(f"codec {payload.codec!r:.80} has more than {_MOST_WRAPPERS} around another")
    name, separator, inner = payload.codec.partition("/")
    if name in _WRAPPERS:
        return _WRAPPERS[name](unit, Payload(inner, payload.dtype, payload.buffers), decode_values)
    if name not in _LEAVES or separator:
        known = ", ".join(sorted((*_LEAVES, *_WRAPPERS)))
        raise ProtocolError(f"codec {payload.codec!r} is not known, only {known}")
    return _LEAVES[name](unit, payload)
