"""A compression whose bits and ratio change from round to round, as the root's controller plans.

All units of one node's link share a `Level`, which is set when the answer to a plan passes through the node,
before anything that was made by it. What a level loses goes through the error feedback of whoever wraps this
codec, so that nothing is lost when the level changes: a residual of 2 bits is sent by the dense values of the
next round.
"""

from ..checkpoints.state import State, load_into, state_of
from ..wire.messages import Array, Payload
from ..wire.units import PLAN, Unit
from .base import Compressor
from .dense import Dense
from .fp16 import Half
from .quantized import Quantized
from .top_k import ChunkedTopK

_DENSE_BITS, _HALF_BITS = 32, 16


class Level:
    """Bits of a value and share of the values that is sent; dense at first. Any thread may set or read it."""

    def __init__(self) -> None:
        self._now = (_DENSE_BITS, 1.0)

    @property
    def now(self) -> tuple[int, float]:
        """Bits, 32, 16, 8, 4 or 2, and ratio."""
        return self._now

    def set(self, bits: int, ratio: float) -> None:
        """Changes it, for whatever is encoded from now on."""
        self._now = (bits, ratio)


class ByLevel:
    """See `Compressor`: without a memory of values; its payload shares no memory with them."""

    def __init__(self, level: Level) -> None:
        self._level = level

    def encode(self, unit: Unit, values: Array) -> Payload:
        """See `Compressor`."""
        bits, ratio = self._level.now
        if bits == _DENSE_BITS:
            return Dense().encode(unit, values.copy())
        codec: Compressor = Half() if bits == _HALF_BITS else Quantized(bits)
        return (codec if ratio == 1 else ChunkedTopK(ratio, codec)).encode(unit, values)

    def state(self) -> State:
        """See `Stateful`."""
        bits, ratio = self._level.now
        return State(facts={"bits": bits, "ratio": ratio})

    def load_state(self, state: State) -> None:
        """See `Stateful`."""
        self._level.set(state.facts["bits"], state.facts["ratio"])


class Listening:
    """See `Compressor`: leaves all to another one, and sets a level when an answer to a plan passes.

    Args:
        inner: encodes.
        level: is set.
    """

    def __init__(self, inner: Compressor, level: Level) -> None:
        self._inner = inner
        self._level = level

    def encode(self, unit: Unit, values: Array) -> Payload:
        """See `Compressor`."""
        if unit.role == PLAN:
            self._level.set(*codec_from(values))
        return self._inner.encode(unit, values)

    def state(self) -> State:
        """See `Stateful`."""
        return state_of(self._inner)

    def load_state(self, state: State) -> None:
        """See `Stateful`."""
        load_into(self._inner, state)


def codec_from(answer: Array) -> tuple[int, float]:
    """Returns bits and ratio, of the root's answer to a plan: see `synchronization.planning`."""
    return int(answer[1]), float(answer[2])
