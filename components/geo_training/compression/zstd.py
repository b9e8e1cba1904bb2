"""Zstandard over what another compressor gives, without loss.

Bytes: 16 for each buffer, and what Zstandard makes of all of them together, which depends on the values;
where that is not less, the payload stays as it was. Source: RFC 8878. The library is Arrow's, which the
extra `engine` brings.
"""

from dataclasses import dataclass
from importlib.util import find_spec
from typing import Annotated

import numpy as np

from ..._files import InputError
from ..checkpoints.state import State, load_into, state_of
from ..errors import ProtocolError
from ..spec import Interval, check
from ..wire.messages import MAX_BUFFERS, Array, Payload
from ..wire.units import Unit
from .base import Compressor, Decoder
from .floats import wire_dtype

NAME = "zstd"
_DTYPES = ("<f2", "<f4", "<f8", "|i1", "|u1", "<u2", "<i4", "<u4", "<i8")
_BYTES_A_VALUE, _FURTHER_BYTES = 16, 4096
"""No codec needs as many: what claims more is not decompressed."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ZstdOptions:
    """Zstandard over all that the technique gives.

    Raises:
        InputError: a value that is not allowed, or the library is missing; names the extra that brings it.
    """

    level: Annotated[int, Interval(low=1, high=19)] = 3
    """1 is fast, 19 small."""

    def __post_init__(self) -> None:
        """Checks the values and the library."""
        check(self)
        if find_spec("pyarrow") is None:
            raise InputError("zstd needs pyarrow, which geokfp[engine] brings")


@dataclass(frozen=True, slots=True)
class Zstandard:
    """Buffers: dtype and length of each inner buffer, int64; their compressed bytes.

    Attributes:
        inner: whose payload is compressed.
        level: 1 (fast) to 19 (small).
    """

    inner: Compressor
    level: int = 3

    def encode(self, unit: Unit, values: Array) -> Payload:
        """See `Compressor`."""
        import pyarrow

        payload = self.inner.encode(unit, values)
        buffers = [np.ascontiguousarray(b, b.dtype.newbyteorder("<")) for b in payload.buffers]
        layout = np.array([[_DTYPES.index(wire_dtype(b)), b.size] for b in buffers], "<i8").ravel()
        plain = b"".join(buffer.tobytes() for buffer in buffers)
        codec = pyarrow.Codec("zstd", compression_level=self.level)
        packed = np.frombuffer(codec.compress(plain, asbytes=True), np.uint8)
        if layout.nbytes + packed.nbytes >= payload.num_bytes:
            return payload
        return Payload(f"{NAME}/{payload.codec}", payload.dtype, (layout, packed))

    def state(self) -> State:
        """See `Stateful`: that of the inner one."""
        return state_of(self.inner)

    def load_state(self, state: State) -> None:
        """See `Stateful`."""
        load_into(self.inner, state)


def read(unit: Unit, payload: Payload, decode: Decoder) -> Array:
    """See `Decoder`; `payload` names the inner codec, which `decode` knows."""
    import pyarrow

    if [buffer.dtype.str for buffer in payload.buffers] != ["<i8", "|u1"]:
        raise ProtocolError(f"a zstd payload of {unit.key} needs a layout and bytes")
    dtypes, ends = _layout(payload.buffers[0], _BYTES_A_VALUE * unit.count + _FURTHER_BYTES)
    size = ends[-1] if ends else 0
    try:
        plain = pyarrow.decompress(payload.buffers[1], size, codec="zstd")
    except (OSError, ValueError) as error:
        raise ProtocolError(f"a zstd payload of {unit.key}: {error}".splitlines()[0]) from error
    body = np.frombuffer(plain, np.uint8)
    starts = [0, *ends][:-1]
    buffers = tuple(body[s:e].view(d) for d, s, e in zip(dtypes, starts, ends, strict=True))
    return decode(unit, Payload(payload.codec, payload.dtype, buffers))


def _layout(layout: Array, most_bytes: int) -> tuple[list[str], list[int]]:
    """Returns the dtypes of the buffers, and where each ends."""
    if layout.size % 2 or layout.size > 2 * MAX_BUFFERS:
        raise ProtocolError(f"a zstd layout of {layout.size} numbers")
    dtypes, ends = [], [0]
    for dtype, count in layout.reshape(-1, 2).tolist():
        if not 0 <= dtype < len(_DTYPES) or not 0 <= count <= most_bytes:
            raise ProtocolError(f"a zstd layout of dtype {dtype} and {count} values")
        dtypes.append(_DTYPES[dtype])
        ends.append(ends[-1] + count * np.dtype(_DTYPES[dtype]).itemsize)
    if ends[-1] > most_bytes:
        raise ProtocolError(f"a zstd layout of {ends[-1]} bytes, at most {most_bytes} are allowed")
    return dtypes, ends[1:]
