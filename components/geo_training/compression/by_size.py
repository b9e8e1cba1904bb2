"""Choice by size: a unit of few values costs little as it is, and suffers most from a lossy codec.

Source: the lower bound of Bi-Sparse in GeoMX, below which tensors stay dense, or FP16 in its MPQ.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar

from ..options import COMPRESSION, OneOf, Options, Whole, option
from ..units import Unit
from .base import Compressor
from .dense import Dense
from .fp16 import Half

_SMALL: Mapping[str, Callable[[], Compressor]] = {"none": Dense, "fp16": Half}


@dataclass(frozen=True, kw_only=True, slots=True)
class BySize(Options):
    """Units below a bound keep their values, exactly or as FP16."""

    what: ClassVar[str] = COMPRESSION
    name: ClassVar[str] = "by_size"

    bound: int = option(1000, Whole(0, 1 << 40))
    """Values of a unit from which the technique is used."""
    small: str = option("none", OneOf(tuple(_SMALL)))
    """What smaller units are: `none`, dense, or `fp16`."""

    def small_unit(self, unit: Unit) -> Compressor | None:
        """See `SizeRule`."""
        return _SMALL[self.small]() if unit.count < self.bound else None
