"""Choice by size: a unit of few values costs little as it is, and suffers most from a lossy codec.

Source: the lower bound of Bi-Sparse in GeoMX, below which tensors stay dense, or FP16 in its MPQ.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated

from ..spec import Interval, OneOf, check
from ..wire.units import Unit
from .base import Compressor
from .dense import Dense
from .fp16 import Half

_SMALL: Mapping[str, Callable[[], Compressor]] = {"none": Dense, "fp16": Half}


@dataclass(frozen=True, kw_only=True, slots=True)
class BySize:
    """Units below a bound keep their values, exactly or as FP16.

    Raises:
        InputError: a value that is not allowed; names the option, the value and what is.
    """

    bound: Annotated[int, Interval(low=0, high=1 << 40)] = 1000
    """Values of a unit from which the technique is used."""
    small: Annotated[str, OneOf(tuple(_SMALL))] = "none"
    """What smaller units are: `none`, dense, or `fp16`."""

    def __post_init__(self) -> None:
        """Checks the values."""
        check(self)

    def small_unit(self, unit: Unit) -> Compressor | None:
        """See `SizeRule`."""
        return _SMALL[self.small]() if unit.count < self.bound else None
