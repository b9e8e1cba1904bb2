"""The techniques that a user may name, with their options: which compressors they are made of, each way.

Bytes and sources are told where each codec is. Values towards the root are sums over a site's samples, those
towards the workers the mean.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, ClassVar, Self, TypeAlias

from ..spec import Interval, OneOf, check
from .base import Compressor
from .bi_sparse import BiSparse, LargestOfAll
from .by_size import BySize
from .demo import LARGEST_BLOCK, Cosine
from .dense import Dense
from .error_feedback import ErrorFeedback
from .fp16 import Half
from .level import ByLevel, Level
from .quantized import BITS, LARGEST_CHUNK, Quantized
from .top_k import ChunkedTopK
from .two_bit import TwoBit
from .union import Union

_DENSE_BITS, _HALF_BITS = 32, 16
_Ratio: TypeAlias = Annotated[float, Interval(low=0, high=1, with_low=False)]
_Decay: TypeAlias = Annotated[float, Interval(low=0, high=1)]
_ValueBits: TypeAlias = Annotated[int, OneOf((_DENSE_BITS, _HALF_BITS, *BITS))]
_LOSSY, _UNION, _NONE = "lossy", "union", "none"
_EXACT, _SAMPLED = "exact", "sampled"


OVERLAPPING_BYTES = 128 << 10
"""A slice on the wire so small that on a slow link results come down while later slices still go up."""


class _Checked:
    __slots__ = ()

    slice_bytes: ClassVar[int] = 4 << 20
    """What is sent of that is small in any case."""

    def __post_init__(self) -> None:
        """Checks the values.

        Raises:
            InputError: a value that is not allowed; names the option, the value and what is.
        """
        check(self)

    def for_changes(self) -> Self:
        """See `Technique`."""
        return self


class _WithSizeRule(_Checked):
    __slots__ = ()

    def size_rule(self) -> BySize:
        """See `Technique`."""
        return BySize()


@dataclass(frozen=True, kw_only=True, slots=True)
class NoCompression(_Checked):
    """All values as they are."""

    slice_bytes: ClassVar[int] = OVERLAPPING_BYTES

    def towards_root(self) -> Compressor:
        """See `Technique`."""
        return Dense()

    def towards_workers(self) -> Compressor:
        """See `Technique`."""
        return Dense()

    def size_rule(self) -> BySize:
        """See `Technique`."""
        return BySize(bound=0)


@dataclass(frozen=True, kw_only=True, slots=True)
class HalfPrecision(_Checked):
    """FP16 both ways."""

    slice_bytes: ClassVar[int] = 2 * OVERLAPPING_BYTES

    feedback: _Decay = 0.0
    """Share of what was lost that is added to the next values; 0 for none."""

    def towards_root(self) -> Compressor:
        """See `Technique`."""
        return _fed_back(Half(), self.feedback)

    def towards_workers(self) -> Compressor:
        """See `Technique`."""
        return self.towards_root()

    def size_rule(self) -> BySize:
        """See `Technique`."""
        return BySize(bound=0)


@dataclass(frozen=True, kw_only=True, slots=True)
class Quantization(_WithSizeRule):
    """8, 4 or 2 bits both ways, each with its own error feedback."""

    slice_bytes: ClassVar[int] = 2 * OVERLAPPING_BYTES

    bits: Annotated[int, OneOf(BITS)] = 8
    """Bits of a value."""
    chunk: Annotated[int, Interval(low=8, high=LARGEST_CHUNK)] = 1024
    """Values that share scales."""
    feedback: _Decay = 1.0
    """Share of what was lost that is added to the next values; 0 for none."""

    def towards_root(self) -> Compressor:
        """See `Technique`."""
        return _fed_back(Quantized(self.bits, self.chunk), self.feedback)

    def towards_workers(self) -> Compressor:
        """See `Technique`."""
        return self.towards_root()


@dataclass(frozen=True, kw_only=True, slots=True)
class TopK(_WithSizeRule):
    """The largest values of each 4096."""

    ratio: _Ratio = 0.015
    """Share of the values that is sent."""
    bits: _ValueBits = 32
    """Bits of a value that is sent."""
    feedback: _Decay = 1.0
    """Share of what was not sent that is added to the next values; 0 for none."""
    down: Annotated[str, OneOf((_LOSSY, _UNION, _NONE))] = _LOSSY
    """Way down: `lossy`, the same with its own error feedback; `union`, what is not zero; `none`, dense."""

    def towards_root(self) -> Compressor:
        """See `Technique`."""
        return _fed_back(ChunkedTopK(self.ratio, _values(self.bits)), self.feedback)

    def towards_workers(self) -> Compressor:
        """See `Technique`."""
        return _down(self.down, self.towards_root)


@dataclass(frozen=True, kw_only=True, slots=True)
class BiSparseOptions(_WithSizeRule):
    """The largest values of all, with momentum correction; their union back."""

    ratio: _Ratio = 0.01
    """Share of the values that is sent."""
    bits: _ValueBits = 32
    """Bits of a value that is sent."""
    momentum: _Decay = 0.9
    """Of the correction; 0 for none."""
    threshold: Annotated[str, OneOf((_EXACT, _SAMPLED))] = _EXACT
    """How the smallest value that is sent is found; by a sample fewer values may be sent, never more."""
    down: Annotated[str, OneOf((_LOSSY, _UNION, _NONE))] = _UNION
    """Way down: `union`, what is not zero; `lossy`, as many as up, with error feedback; `none`, dense."""

    def for_changes(self) -> Self:
        """See `Technique`; a change holds the local optimizer's momentum, and is not to gain it twice."""
        return replace(self, momentum=0.0)

    def towards_root(self) -> Compressor:
        """See `Technique`."""
        return BiSparse(self._largest(), _values(self.bits), self.momentum)

    def towards_workers(self) -> Compressor:
        """See `Technique`."""
        return _down(self.down, lambda: ErrorFeedback(self._largest()))

    def _largest(self) -> LargestOfAll:
        return LargestOfAll(self.ratio, _values(self.bits), is_sampled=self.threshold == _SAMPLED)


@dataclass(frozen=True, kw_only=True, slots=True)
class MixedPrecision(BiSparseOptions):
    """GeoMX's mixed precision quantisation: Bi-Sparse for large units, FP16 for the others."""

    bound: Annotated[int, Interval(low=0, high=1 << 40)] = 200_000
    """Values of a unit from which it is sparse."""

    def size_rule(self) -> BySize:
        """See `Technique`."""
        return BySize(bound=self.bound, small="fp16")


@dataclass(frozen=True, kw_only=True, slots=True)
class TwoBitOptions(_WithSizeRule):
    """MXNet's two bits: plus or minus a threshold, or zero."""

    threshold: Annotated[float, Interval(low=0, high=1e30, with_low=False)] = 0.5
    """What a value must reach to be sent, and as what it is sent."""
    feedback: _Decay = 1.0
    """Share of what was not sent that is added to the next values; 0 for none."""
    down: Annotated[str, OneOf((_LOSSY, _NONE))] = _NONE
    """Way down: `none`, dense, as in MXNet; `lossy`, the same with its own error feedback."""

    def towards_root(self) -> Compressor:
        """See `Technique`."""
        return _fed_back(TwoBit(self.threshold), self.feedback)

    def towards_workers(self) -> Compressor:
        """See `Technique`."""
        return _down(self.down, self.towards_root)


@dataclass(frozen=True, kw_only=True, slots=True)
class Demo(_WithSizeRule):
    """The largest coefficients of the blocks' cosine transforms."""

    ratio: _Ratio = 0.03
    """Share of the coefficients that is sent."""
    bits: _ValueBits = 32
    """Bits of a coefficient that is sent."""
    block: Annotated[int, Interval(low=2, high=LARGEST_BLOCK)] = 64
    """Values transformed together."""
    feedback: _Decay = 0.999
    """DeMo's decay of the momentum, which is what was not sent."""
    down: Annotated[str, OneOf((_LOSSY, _NONE))] = _LOSSY
    """Way down: `lossy`, the same with its own error feedback; `none`, dense."""

    def towards_root(self) -> Compressor:
        """See `Technique`."""
        return _fed_back(Cosine(self.block, ChunkedTopK(self.ratio, _values(self.bits))), self.feedback)

    def towards_workers(self) -> Compressor:
        """See `Technique`."""
        return _down(self.down, self.towards_root)


@dataclass(frozen=True, kw_only=True)
class Auto(_WithSizeRule):
    """Bits and ratio as the root's controller plans, from what workers measure; both ways alike."""

    slice_bytes: ClassVar[int] = OVERLAPPING_BYTES

    @cached_property
    def level(self) -> Level:
        """What all units encoded by this choice share."""
        return Level()

    def towards_root(self) -> Compressor:
        """See `Technique`."""
        return ErrorFeedback(ByLevel(self.level))

    def towards_workers(self) -> Compressor:
        """See `Technique`."""
        return self.towards_root()


AnyTechnique: TypeAlias = (
    NoCompression
    | HalfPrecision
    | Quantization
    | TopK
    | BiSparseOptions
    | MixedPrecision
    | TwoBitOptions
    | Demo
    | Auto
)
TECHNIQUES: Mapping[str, type[AnyTechnique]] = {
    "none": NoCompression,
    "fp16": HalfPrecision,
    "quantized": Quantization,
    "top_k": TopK,
    "bi_sparse": BiSparseOptions,
    "mpq": MixedPrecision,
    "two_bit": TwoBitOptions,
    "demo": Demo,
    "auto": Auto,
}


def _fed_back(codec: Compressor, decay: float) -> Compressor:
    return ErrorFeedback(codec, decay) if decay else codec


def _values(bits: int) -> Compressor:
    if bits == _DENSE_BITS:
        return Dense()
    return Half() if bits == _HALF_BITS else Quantized(bits)


def _down(way: str, lossy: Callable[[], Compressor]) -> Compressor:
    if way == _LOSSY:
        return lossy()
    return Union() if way == _UNION else Dense()
