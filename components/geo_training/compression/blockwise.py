"""Encodes the blocks of a unit on their own, so that each can be read without the others.

The values are cut before they are encoded, and every block is to its compressor what a unit is elsewhere: it
has a state of its own, and places count from its first value. So `top_k` takes the largest of each block,
`quantized` scales each, and what a block lost stays with that block. Whether a unit is too small for a
technique is asked of the whole unit.
"""

from collections.abc import Callable

import numpy as np

from ..checkpoints.state import State, load_into, state_of
from ..wire.messages import Array, Payload
from ..wire.units import Unit
from .base import Compressor
from .bi_sparse import BiSparse
from .dense import Dense
from .per_unit import PerUnit
from .zstd import Zstandard

_PROBE_VALUES = 1 << 14
_STEP = 256
"""Blocks hold a multiple of these values, which techniques with blocks of their own fill evenly."""


def part(unit: Unit, span: slice) -> Unit:
    """Returns the unit that a block is."""
    return Unit(unit.key, unit.offset + span.start, span.stop - span.start)


class Blockwise:
    """The compressors of one link, in one direction; called by one thread a time.

    Args:
        choose: gives the compressor of a unit.
    """

    def __init__(self, choose: Callable[[Unit], Compressor]) -> None:
        self._choose = choose
        self._of_units: dict[Unit, PerUnit] = {}

    def is_dense(self, unit: Unit) -> bool:
        """Tells whether a unit's blocks are sent as they are, so that some may be sent together."""
        return isinstance(self._choose(unit), Dense)

    def block_values(self, unit: Unit, block_bytes: int) -> int:
        """Returns how many values of a unit make a block of about so many bytes; the same each time.

        Args:
            unit: what is cut.
            block_bytes: that an encoded block should have.
        """
        if self.is_dense(unit):
            return max(1, block_bytes // 4)
        probe = np.random.default_rng(0).standard_normal(min(unit.count, _PROBE_VALUES), np.float32)
        encoded = self._choose(unit).encode(Unit(unit.key, unit.offset, probe.size), probe)
        values = block_bytes * probe.size // max(1, encoded.num_bytes)
        return max(_STEP, values // _STEP * _STEP)

    def encode(self, unit: Unit, span: slice, values: Array) -> Payload:
        """Returns the payload of one block, `values[span]`, for `decode` with `part(unit, span)`."""
        return self._of(unit).encode(part(unit, span), values[span])

    def take_back(self, unit: Unit, span: slice, values: Array) -> bool:
        """Gives a block's compressor what was not counted of it.

        Returns:
            Whether it has taken it. One without momentum does not: the values are to be added to the next.
        """
        compressor = self._of(unit).of(part(unit, span))
        while isinstance(compressor, Zstandard):
            compressor = compressor.inner
        if not isinstance(compressor, BiSparse):
            return False
        compressor.take_back(values)
        return True

    def state(self) -> State:
        """See `Stateful`."""
        parts = {str(index): state_of(blocks) for index, blocks in enumerate(self._of_units.values())}
        units = State(facts={"units": [unit.to_list() for unit in self._of_units]})
        return State.of({"own": units, **parts})

    def load_state(self, state: State) -> None:
        """See `Stateful`."""
        self._of_units.clear()
        for index, named in enumerate(state.part("own").facts.get("units", [])):
            load_into(self._of(Unit(*named)), state.part(str(index)))

    def _of(self, unit: Unit) -> PerUnit:
        if unit not in self._of_units:
            self._of_units[unit] = PerUnit(lambda _block: self._choose(unit))
        return self._of_units[unit]
