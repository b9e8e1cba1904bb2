"""What messages are made of, and its form in a frame's head; whatever does not fit raises `ValueError`.

Knows nothing of frames; `messages` makes a `FrameError` of what is raised here.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from .units import RoundId, Unit

MAX_NAME_CHARACTERS = 256

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
_DTYPES = frozenset(("<f2", "<f4", "<f8", "|i1", "|u1", "<u2", "<i4", "<u4", "<i8"))


@dataclass(frozen=True, slots=True)
class Payload:
    """Values as a compressor left them.

    Attributes:
        codec: name of the compressor that reads them; `ABSENT` for a contribution without values.
        dtype: of the values when decoded, such as `<f4`.
        buffers: the encoded values, one-dimensional.
    """

    codec: str
    dtype: str
    buffers: tuple[Array, ...]

    @property
    def num_bytes(self) -> int:
        """Bytes of the buffers on the wire."""
        return sum([buffer.nbytes for buffer in self.buffers])


ABSENT = "absent"
NOTHING = Payload(ABSENT, "<f4", ())
"""What a worker sends that takes part in a round without values: no samples left, or not the first worker."""


def text(value: Any) -> str:
    """Returns a text of a head."""
    if not isinstance(value, str) or not 0 < len(value) <= MAX_NAME_CHARACTERS:
        raise ValueError(f"a text of 1 to {MAX_NAME_CHARACTERS} characters is needed, not {value!r:.40}")
    return value


def natural(value: Any) -> int:
    """Returns a whole number of a head."""
    if type(value) is not int or not 0 <= value < 1 << 62:
        raise ValueError(f"a whole number from 0 is needed, not {value!r:.40}")
    return value


def number(value: Any) -> float:
    """Returns a number of a head."""
    if type(value) is not float or not 0 <= value < float("inf"):
        raise ValueError(f"a finite number from 0 is needed, not {value!r:.40}")
    return value


def fields_of(value: Any, count: int) -> Sequence[Any]:
    """Returns an array of a head that has so many fields."""
    if not isinstance(value, list) or len(value) != count:
        raise ValueError(f"an array of {count} is needed, not {value!r:.40}")
    return value


def listed(value: Any) -> list[Any]:
    """Returns an array of a head."""
    if not isinstance(value, list):
        raise ValueError(f"an array is needed, not {value!r:.40}")
    return value


def round_to_head(round_id: RoundId) -> list[Any]:
    """Returns the form of a round in a head."""
    unit = round_id.unit
    return [round_id.scope, *unit.to_list(), round_id.number]


def round_from_head(value: Any) -> RoundId:
    """Reads what `round_to_head` gave."""
    scope, key, offset, count, number = fields_of(value, 5)
    return RoundId(text(scope), Unit(text(key), natural(offset), natural(count)), natural(number))


def payload_to_head(payload: Payload) -> list[Any]:
    """Returns what a head says of the buffers in the body."""
    described = [[b.dtype.newbyteorder("<").str, b.size] for b in payload.buffers]
    return [payload.codec, payload.dtype, described]


def payload_from_head(value: Any, body: Array) -> Payload:
    """Returns the payload whose buffers are views of the body."""
    codec, dtype, described = fields_of(value, 3)
    if dtype not in _DTYPES:
        raise ValueError(f"dtype {dtype!r:.40} is not one of {', '.join(sorted(_DTYPES))}")
    buffers, start = [], 0
    for item in listed(described):
        buffer_dtype, count = fields_of(item, 2)
        if buffer_dtype not in _DTYPES:
            raise ValueError(f"dtype {buffer_dtype!r:.40} is not one of {', '.join(sorted(_DTYPES))}")
        end = start + np.dtype(buffer_dtype).itemsize * natural(count)
        if end > body.nbytes:
            raise ValueError("buffers longer than the body")
        buffers.append(body[start:end].view(buffer_dtype))
        start = end
    return Payload(text(codec), dtype, tuple(buffers))
