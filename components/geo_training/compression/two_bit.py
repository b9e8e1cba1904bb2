"""Two bits a value: plus or minus one threshold, or zero, as MXNet's key-value store has it.

Small values reach the threshold by error feedback. Bytes of n values: ceil(n / 4) + 4. Source: Apache MXNet's
gradient compression, after Strom, *Scalable Distributed DNN Training Using Commodity GPU Cloud Computing*,
Interspeech 2015.
"""

from dataclasses import dataclass

import numpy as np

from ..errors import ProtocolError
from ..wire.messages import Array, Payload
from ..wire.units import Unit
from .bits import pack, unpack
from .floats import LARGEST, as_float32, checked_magnitude, restored, wire_dtype

NAME = "two_bit"
_PLUS, _MINUS = np.uint8(1), np.uint8(2)


@dataclass(frozen=True, slots=True)
class TwoBit:
    """Buffers: the threshold, FP32; the packed codes.

    Attributes:
        threshold: what a value must reach to be sent, and as what it is sent.
    """

    threshold: float

    def encode(self, unit: Unit, values: Array) -> Payload:
        """See `Compressor`."""
        floats = as_float32(unit, values)
        checked_magnitude(unit, floats)
        threshold = np.float32(self.threshold)
        codes = (floats >= threshold) * _PLUS + (floats <= -threshold) * _MINUS
        buffers = (np.array([threshold], "<f4"), pack(codes, 2))
        return Payload(NAME, wire_dtype(values), buffers)


def read(unit: Unit, payload: Payload) -> Array:
    """See `Decoder`."""
    if [buffer.dtype.str for buffer in payload.buffers] != ["<f4", "|u1"]:
        raise ProtocolError(f"a two-bit payload of {unit.key} needs a threshold and codes")
    threshold = payload.buffers[0]
    if threshold.size != 1 or not 0 < threshold[0] < LARGEST:
        raise ProtocolError(f"a two-bit payload of {unit.key} needs one threshold above 0 and in bounds")
    codes = unpack(payload.buffers[1], 2, unit.count)
    if codes.max(initial=0) > _MINUS:
        raise ProtocolError(f"a two-bit payload of {unit.key} holds a code of no meaning")
    levels = np.array([0, threshold[0], -threshold[0]], np.float32)
    return restored(levels[codes], payload.dtype)
