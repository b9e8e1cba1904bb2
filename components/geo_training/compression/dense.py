"""No compression: the values as they are, without a copy.

Bytes of n values: n times those of one.
"""

from ..errors import ProtocolError
from ..wire.messages import Array, Payload
from ..wire.units import Unit
from .floats import wire_dtype

NAME = "dense"


class Dense:
    """All values, in their own dtype (FP32 for parameters); what is not finite too."""

    def encode(self, unit: Unit, values: Array) -> Payload:  # noqa: ARG002
        """See `Compressor`."""
        return Payload(NAME, wire_dtype(values), (values,))


def read(unit: Unit, payload: Payload) -> Array:
    """See `Decoder`."""
    if len(payload.buffers) != 1 or payload.buffers[0].dtype.str != payload.dtype:
        raise ProtocolError(f"a dense payload of {unit.key} needs one buffer of its own dtype")
    return payload.buffers[0]
