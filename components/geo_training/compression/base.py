"""What a compressor is, and what a technique that the user names is. Knows nothing of links or rounds."""

from collections.abc import Callable
from typing import ClassVar, Protocol, TypeAlias

from ..wire.messages import Array, Payload
from ..wire.units import Unit

Decoder: TypeAlias = Callable[[Unit, Payload], Array]
"""Reads a payload without state. Raises `ProtocolError` where the buffers are not what the codec writes, and
does so before it allocates what they claim."""


class Compressor(Protocol):
    """Encodes what one node sends of one unit, over one link in one direction."""

    def encode(self, unit: Unit, values: Array) -> Payload:
        """Returns the payload of `values`; called once a round, in the rounds' order, by one thread a time.

        May keep state from round to round. The values must not change until the payload is sent.

        Args:
            unit: what the values are.
            values: `unit.count` of them; of any number and dtype where nothing may be lost.

        Raises:
            NotFiniteError: the codec is lossy, and a value is not finite or too large.
            UsageError: the codec is lossy, and the values are not of FP32 or FP64, or not `unit.count`.
        """


class SizeRule(Protocol):
    """Tells which units are too small for a technique."""

    def small_unit(self, unit: Unit) -> Compressor | None:
        """Returns what encodes a unit that is too small; None when it is not."""


class Technique(Protocol):
    """What a user names in `compression`; its options are its fields.

    Attributes:
        slice_bytes: bytes of the values that are best encoded at once.
    """

    slice_bytes: ClassVar[int]

    def towards_root(self) -> Compressor:
        """Returns what encodes one unit up a link between sites; called once a unit and link."""

    def towards_workers(self) -> Compressor:
        """Returns what encodes one unit down all links of a node; called once a unit and node."""

    def for_changes(self) -> "Technique":
        """Returns what is used for changes of weights, which are no gradients: whose momentum is in them."""

    def size_rule(self) -> SizeRule:
        """Returns the rule where the user names none."""
