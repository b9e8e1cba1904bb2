"""The techniques that a user may name, with their options: which compressors they are made of, each way.

Bytes and sources are told where each codec is. Values towards the root are sums over a site's samples, those
towards the workers the mean.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from ..options import COMPRESSION, Number, OneOf, Options, Whole, option
from .base import Compressor
from .bi_sparse import BiSparse, LargestOfAll
from .by_size import BySize
from .demo import LARGEST_BLOCK, Cosine
from .dense import Dense
from .error_feedback import ErrorFeedback
from .fp16 import Half
from .quantized import BITS, LARGEST_CHUNK, Quantized
from .top_k import ChunkedTopK
from .two_bit import TwoBit
from .union import Union

_RATIO = Number(0, 1, without_low=True)
_DECAY = Number(0, 1)
_DENSE_BITS, _HALF_BITS = 32, 16
_VALUE_BITS = OneOf((_DENSE_BITS, _HALF_BITS, *BITS))
_LOSSY, _UNION, _NONE = "lossy", "union", "none"
_EXACT, _SAMPLED = "exact", "sampled"


class _WithSizeRule(Options):
    __slots__ = ()

    def size_rule(self) -> BySize:
        """See `Technique`."""
        return BySize()


@dataclass(frozen=True, kw_only=True, slots=True)
class NoCompression(Options):
    """All values as they are."""

    what: ClassVar[str] = COMPRESSION
    name: ClassVar[str] = "none"

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
class HalfPrecision(Options):
    """FP16 both ways."""

    what: ClassVar[str] = COMPRESSION
    name: ClassVar[str] = "fp16"

    feedback: float = option(0.0, _DECAY)
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

    what: ClassVar[str] = COMPRESSION
    name: ClassVar[str] = "quantized"

    bits: int = option(8, OneOf(BITS))
    """Bits of a value."""
    chunk: int = option(1024, Whole(8, LARGEST_CHUNK))
    """Values that share scales."""
    feedback: float = option(1.0, _DECAY)
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

    what: ClassVar[str] = COMPRESSION
    name: ClassVar[str] = "top_k"

    ratio: float = option(0.015, _RATIO)
    """Share of the values that is sent."""
    bits: int = option(32, _VALUE_BITS)
    """Bits of a value that is sent."""
    feedback: float = option(1.0, _DECAY)
    """Share of what was not sent that is added to the next values; 0 for none."""
    down: str = option(_LOSSY, OneOf((_LOSSY, _UNION, _NONE)))
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

    what: ClassVar[str] = COMPRESSION
    name: ClassVar[str] = "bi_sparse"

    ratio: float = option(0.01, _RATIO)
    """Share of the values that is sent."""
    bits: int = option(32, _VALUE_BITS)
    """Bits of a value that is sent."""
    momentum: float = option(0.9, _DECAY)
    """Of the correction; 0 for none."""
    threshold: str = option(_EXACT, OneOf((_EXACT, _SAMPLED)))
    """How the smallest value that is sent is found; by a sample fewer values may be sent, never more."""
    down: str = option(_UNION, OneOf((_LOSSY, _UNION, _NONE)))
    """Way down: `union`, what is not zero; `lossy`, as many as up, with error feedback; `none`, dense."""

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

    what: ClassVar[str] = COMPRESSION
    name: ClassVar[str] = "mpq"

    bound: int = option(200_000, Whole(0, 1 << 40))
    """Values of a unit from which it is sparse."""

    def size_rule(self) -> BySize:
        """See `Technique`."""
        return BySize(bound=self.bound, small="fp16")


@dataclass(frozen=True, kw_only=True, slots=True)
class TwoBitOptions(_WithSizeRule):
    """MXNet's two bits: plus or minus a threshold, or zero."""

    what: ClassVar[str] = COMPRESSION
    name: ClassVar[str] = "two_bit"

    threshold: float = option(0.5, Number(0, 1e30, without_low=True))
    """What a value must reach to be sent, and as what it is sent."""
    feedback: float = option(1.0, _DECAY)
    """Share of what was not sent that is added to the next values; 0 for none."""
    down: str = option(_NONE, OneOf((_LOSSY, _NONE)))
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

    what: ClassVar[str] = COMPRESSION
    name: ClassVar[str] = "demo"

    ratio: float = option(0.03, _RATIO)
    """Share of the coefficients that is sent."""
    bits: int = option(32, _VALUE_BITS)
    """Bits of a coefficient that is sent."""
    block: int = option(64, Whole(2, LARGEST_BLOCK))
    """Values transformed together."""
    feedback: float = option(0.999, _DECAY)
    """DeMo's decay of the momentum, which is what was not sent."""
    down: str = option(_LOSSY, OneOf((_LOSSY, _NONE)))
    """Way down: `lossy`, the same with its own error feedback; `none`, dense."""

    def towards_root(self) -> Compressor:
        """See `Technique`."""
        return _fed_back(Cosine(self.block, ChunkedTopK(self.ratio, _values(self.bits))), self.feedback)

    def towards_workers(self) -> Compressor:
        """See `Technique`."""
        return _down(self.down, self.towards_root)


AnyTechnique: TypeAlias = (
    NoCompression
    | HalfPrecision
    | Quantization
    | TopK
    | BiSparseOptions
    | MixedPrecision
    | TwoBitOptions
    | Demo
)
TECHNIQUES: Mapping[str, type[AnyTechnique]] = {
    NoCompression.name: NoCompression,
    HalfPrecision.name: HalfPrecision,
    Quantization.name: Quantization,
    TopK.name: TopK,
    BiSparseOptions.name: BiSparseOptions,
    MixedPrecision.name: MixedPrecision,
    TwoBitOptions.name: TwoBitOptions,
    Demo.name: Demo,
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
