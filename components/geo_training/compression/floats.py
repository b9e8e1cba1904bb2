"""What lossy codecs take and give back: FP32, finite, of a bounded magnitude.

A value that is not finite would stay in a residual for ever, so that it is refused when it first comes.
"""

import numpy as np

from ..errors import NotFiniteError, ProtocolError, UsageError
from ..wire.messages import Array
from ..wire.units import Unit

LARGEST = 2.0**126
"""Magnitudes from here on are refused: what is computed from them would leave FP32."""

LARGEST_BITS = int(np.float32(LARGEST).view(np.uint32))
_WITHOUT_SIGN = np.uint32(0x7FFFFFFF)
_DTYPES = ("<f4", "<f8")


def wire_dtype(values: Array) -> str:
    """Returns the dtype that the values have on the wire, as numpy names it: little endian."""
    return values.dtype.newbyteorder("<").str


def as_float32(unit: Unit, values: Array) -> Array:
    """Returns the values as contiguous FP32; the array itself when it is that.

    Raises:
        UsageError: they are not of FP32 or FP64, or not as many as the unit counts.
    """
    dtype = wire_dtype(values)
    if dtype not in _DTYPES or values.shape != (unit.count,):
        wanted = f"{unit.count} of {' or '.join(_DTYPES)}"
        raise UsageError(f"{_shown(unit)}: lossy compression takes {wanted}, not {values.shape} of {dtype}")
    with np.errstate(over="ignore"):
        return np.ascontiguousarray(values, "<f4")


def checked_magnitude(unit: Unit, values: Array) -> float:
    """Returns the largest magnitude of the values, 0 without any.

    Raises:
        NotFiniteError: it is not finite, or too large.
    """
    magnitude = max(float(values.max(initial=0.0)), -float(values.min(initial=0.0)))
    refuse_beyond(unit, magnitude)
    return magnitude


def refuse_beyond(unit: Unit, magnitude: float) -> None:
    """Refuses values whose largest magnitude this is.

    Raises:
        NotFiniteError: it is not finite, or too large.
    """
    if not magnitude < LARGEST:
        allowed = f"lossy compression takes less than {LARGEST:.1e}"
        raise NotFiniteError(f"{_shown(unit)} holds a magnitude of {magnitude}: {allowed}")


def magnitude_bits(values: Array) -> Array:
    """Returns a new uint32 array that is in the order of the magnitudes; what is not finite comes last."""
    return values.view(np.uint32) & _WITHOUT_SIGN


def refuse_bits_beyond(unit: Unit, bits: int) -> None:
    """Refuses values whose largest `magnitude_bits` these are.

    Raises:
        NotFiniteError: it is not finite, or too large.
    """
    if bits >= LARGEST_BITS:
        refuse_beyond(unit, float(np.uint32(bits).view(np.float32)))


def restored(values: Array, dtype: str) -> Array:
    """Returns decoded FP32 values in the dtype that they had.

    Raises:
        ProtocolError: lossy codecs give no such values.
    """
    if dtype not in _DTYPES:
        raise ProtocolError(f"a lossy payload of {dtype}: {' or '.join(_DTYPES)} is needed")
    return values.astype(dtype, copy=False)


def _shown(unit: Unit) -> str:
    return f"{unit.key}[{unit.offset}:{unit.offset + unit.count}]"
