"""What a compressor is. Knows nothing of links or rounds."""

from typing import Protocol

from ..messages import Array, Payload
from ..units import Unit


class Compressor(Protocol):
    """Encodes what one node sends over one link in one direction."""

    name: str
    """Goes with the payload, so that the other end knows how to read it."""

    def encode(self, unit: Unit, values: Array) -> Payload:
        """Returns the payload of `values`; called once a round and unit, in the rounds' order.

        May keep a residual for the unit. The values must not change until the payload is sent.
        """

    def decode(self, unit: Unit, payload: Payload) -> Array:
        """Returns the values of a payload of this codec, without state.

        Raises:
            ProtocolError: the buffers are not what this codec writes.
        """
