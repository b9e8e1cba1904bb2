"""How values become bytes on a link, in both directions, chosen by name.

A compressor is an object per link and direction, because the lossy ones keep a residual per unit. Whatever
wraps one (error feedback, a choice by size) is a compressor again.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from .._names import chosen
from ..errors import ProtocolError
from ..messages import ABSENT, Array, Payload
from ..units import Unit
from .base import Compressor
from .none import Dense

__all__ = ["COMPRESSIONS", "Compression", "Compressor", "compression", "decode"]


@dataclass(frozen=True, slots=True)
class Compression:
    """Factories of the compressors of one link: each call gives one with a state of its own.

    Attributes:
        up: towards the root.
        down: towards the workers.
    """

    up: Callable[[], Compressor]
    down: Callable[[], Compressor]


COMPRESSIONS: Mapping[str, Compression] = {"none": Compression(up=Dense, down=Dense)}

_DECODERS: Mapping[str, Compressor] = {Dense.name: Dense()}


def compression(name: str) -> Compression:
    """Returns the compression of that name.

    Raises:
        InputError: there is none of that name.
    """
    return chosen(COMPRESSIONS, "compression", name)


def decode(unit: Unit, payload: Payload) -> Array | None:
    """Returns the values of a payload, whoever encoded it; None when it brings none.

    Raises:
        ProtocolError: the codec is not known, or the buffers are not what it writes.
    """
    if payload.codec == ABSENT:
        return None
    decoder = _DECODERS.get(payload.codec)
    if decoder is None:
        raise ProtocolError(f"codec {payload.codec!r} is not known, only {', '.join(sorted(_DECODERS))}")
    return decoder.decode(unit, payload)
