"""The options of DGT, differential gradient transmission; `importance` has its source."""

from dataclasses import dataclass
from typing import Annotated

from ..._files import InputError
from ..spec import Interval, check
from .importance import Share

MOST_BLOCK_BYTES = 1024
"""A block is a datagram: with its head and seal it must pass every link whole."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Dgt:
    """What matters most travels reliably, the rest in datagrams beside it.

    Raises:
        InputError: a value that is not allowed; names the option, the value and what is.
    """

    fraction: Annotated[float, Interval(low=0, high=1)] = 0.8
    """Share of a unit's blocks that is important; with 1 nothing is sent in datagrams."""
    channels: Annotated[int, Interval(low=1, high=7)] = 3
    """Classes of the others, each with a DSCP of its own."""
    block_bytes: Annotated[int, Interval(low=64, high=MOST_BLOCK_BYTES)] = MOST_BLOCK_BYTES
    """Bytes of a block, as it is sent."""
    alpha: Annotated[float, Interval(low=0, high=1, with_high=False)] = 0.3
    """Weight of the earlier rounds in a block's contribution."""
    min_fraction: Annotated[float, Interval(low=0, high=1)] = 0.2
    """What `fraction` falls to at most."""
    adaptive: bool = True
    """Whether `fraction` falls with the norm of what is pushed."""

    def __post_init__(self) -> None:
        """Checks the values."""
        check(self)
        if self.adaptive and self.min_fraction > self.fraction:
            raise InputError(
                f"min_fraction is {self.min_fraction!r}, allowed with fraction {self.fraction!r}: at most "
                "that, or any with adaptive=false"
            )

    @property
    def is_off(self) -> bool:
        """Whether nothing would ever be sent in datagrams."""
        return self.fraction == 1

    @property
    def share(self) -> Share:
        """How large the important share is."""
        return Share(fraction=self.fraction, min_fraction=self.min_fraction, adaptive=self.adaptive)
