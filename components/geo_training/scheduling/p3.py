"""P3: small slices, shallow layers first.

The next forward pass needs the first layers first, though their gradients come last. So slices are small
beside what a link carries in a moment, and of those that wait the one of the shallowest layer leaves next, on
every link, up and down (Jayarajan et al., *Priority-based Parameter Propagation*, MLSys 2019). Knows nothing
of networks.
"""

from dataclasses import dataclass
from typing import Annotated

from ..spec import Interval, check
from .slices import ByLayer, InOrder, Slices


@dataclass(frozen=True, kw_only=True, slots=True)
class Fifo:
    """Slices leave in the order in which they are handed over."""

    def slices(self, slice_bytes: int, least_bytes: int) -> Slices:
        """Returns how tensors are cut.

        Args:
            slice_bytes: bytes of values that suit the compression.
            least_bytes: from which it encodes them as it does large ones.
        """
        return InOrder(slice_bytes, least_bytes)


@dataclass(frozen=True, kw_only=True, slots=True)
class P3:
    """Shallow layers first, in small slices.

    Raises:
        InputError: a value that is not allowed; names the option, the value and what is.
    """

    slice_ms: Annotated[float, Interval(low=1, high=60_000)] = 50.0
    """Milliseconds that a slice takes on the slowest link: as long as something urgent waits at most."""
    rate_mbit: Annotated[float, Interval(low=0.0, high=1e6)] = 0.0
    """Mbit/s of the slowest link; 0 has it measured before the training begins."""

    def __post_init__(self) -> None:
        """Checks the values."""
        check(self)

    def slices(self, slice_bytes: int, least_bytes: int) -> Slices:
        """See `Fifo`."""
        return ByLayer(slice_bytes, least_bytes)
