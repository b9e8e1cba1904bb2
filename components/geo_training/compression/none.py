"""No compression: the values as they are, without a copy."""

from ..errors import ProtocolError
from ..messages import Array, Payload
from ..units import Unit


class Dense:
    """All values, in their own dtype (FP32 for parameters): `count * itemsize` bytes."""

    name = "dense"

    def encode(self, unit: Unit, values: Array) -> Payload:  # noqa: ARG002
        """See `Compressor`."""
        return Payload(self.name, values.dtype.newbyteorder("<").str, (values,))

    def decode(self, unit: Unit, payload: Payload) -> Array:
        """See `Compressor`."""
        if len(payload.buffers) != 1 or payload.buffers[0].dtype.str != payload.dtype:
            raise ProtocolError(f"a dense payload of {unit.key} needs one buffer of its own dtype")
        return payload.buffers[0]
