"""FP16 with one power of two as scale, so that neither large sums overflow nor small gradients vanish.

Bytes of n values: 2n + 4. Sums are made in FP32, of the decoded values. The relative error is at most 2^-11
down to 2^-28 of the unit's largest magnitude. Source: Micikevicius et al., *Mixed Precision Training*, ICLR
2018, whose loss scale this replaces.
"""

import numpy as np

from ..errors import ProtocolError
from ..wire.messages import Array, Payload
from ..wire.units import Unit
from .floats import LARGEST, as_float32, checked_magnitude, restored, wire_dtype

NAME = "fp16"
_TOP_EXPONENT = 15
"""The largest magnitude is scaled to 2^14 and more, and below 2^15."""
_EXPONENT_BITS = 0x7C00
_LOWEST_EXPONENT = -100
"""Units of smaller values than two to this are scaled as if they held that."""


class Half:
    """Buffers: the scale, FP32; the values divided by it, FP16."""

    def encode(self, unit: Unit, values: Array) -> Payload:
        """See `Compressor`."""
        floats = as_float32(unit, values)
        exponent = max(int(np.frexp(checked_magnitude(unit, floats))[1]), _LOWEST_EXPONENT) - _TOP_EXPONENT
        halves = np.multiply(floats, np.float32(2.0**-exponent)).astype("<f2")
        scale = np.array([2.0**exponent], "<f4")
        return Payload(NAME, wire_dtype(values), (scale, halves))


def read(unit: Unit, payload: Payload) -> Array:
    """See `Decoder`."""
    if [buffer.dtype.str for buffer in payload.buffers] != ["<f4", "<f2"]:
        raise ProtocolError(f"an FP16 payload of {unit.key} needs a scale and values")
    scale, halves = payload.buffers
    if scale.size != 1 or not 0 < scale[0] < LARGEST / 2.0**_TOP_EXPONENT * 2:
        raise ProtocolError(f"an FP16 payload of {unit.key} needs one scale above 0 and in bounds")
    if halves.size != unit.count or not _all_finite(halves):
        raise ProtocolError(f"an FP16 payload of {unit.key} needs {unit.count} finite values")
    return restored(halves.astype(np.float32) * scale[0], payload.dtype)


def _all_finite(halves: Array) -> bool:
    return int((halves.view("<u2") & _EXPONENT_BITS).max(initial=0)) < _EXPONENT_BITS
