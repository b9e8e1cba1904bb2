"""The values of pushes that came in blocks, at the node that they were sent to. Knows nothing of networks.

Blocks are copied to their place in one array as they come, which is the push's values when its end has come.
It is kept for who sends the end again, until the round is answered.
"""

import threading

import numpy as np

from ..compression import decode
from ..compression.blockwise import part
from ..errors import ProtocolError
from ..wire.block_messages import IN_BLOCKS, Blocks
from ..wire.messages import JOINED, Array, Payload
from ..wire.units import RoundId, Unit
from .importance import Cut
from .reassembly import Reassembly

_HOLD_S = 600.0
_MOST_BYTES = 1 << 30
_DTYPE = np.dtype("<f4")


class Inbox:
    """What came in blocks to one node; any thread may call it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._blocks: Reassembly[int] = Reassembly(_HOLD_S, _MOST_BYTES)
        self._open: dict[tuple[str, RoundId], Array] = {}
        self._newest: dict[tuple[str, str, Unit], tuple[int, Array, int]] = {}

    def take(self, sender: str, message: Blocks, now: float) -> None:
        """Keeps some blocks until the push that ends them; those that come too late are dropped.

        Raises:
            ProtocolError: they are no blocks of their unit.
        """
        unit = message.round.unit
        cut = _cut(unit, message.block)
        if not message.numbers or max(message.numbers) >= cut.num_blocks:
            raise ProtocolError(f"{message.round}: {sender} sends blocks that are not there")
        sizes = cut.sizes(message.numbers)
        if len(sizes) == 1:
            whole = part(unit, cut.span(message.numbers[0]))
        else:
            whole = Unit(unit.key, unit.offset, sum(sizes))
        values = decode(whole, message.payload)
        if values is None or values.dtype != _DTYPE or values.size != whole.count:
            raise ProtocolError(f"{message.round}: {sender} sends a block of other values than it says")
        start, wire_bytes = 0, message.payload.num_bytes
        with self._lock:
            for number, size in zip(message.numbers, sizes, strict=True):
                of_block = wire_bytes * size // whole.count  # several are dense, and so alike
                num_bytes = 0 if (sender, message.round) in self._open else unit.count * _DTYPE.itemsize
                if self._blocks.add(sender, message.round, number, of_block, num_bytes, now):
                    place = self._values_of(sender, message.round)
                    place[cut.span(number)] = values[start : start + size]
                start += size

    def values(self, sender: str, round_id: RoundId, payload: Payload) -> tuple[Array | None, int]:
        """Returns the values of a push, None when it brings none; of blocks, those that are here.

        Beside them it returns the bytes of the payloads of these blocks, 0 where it came whole.

        Raises:
            ProtocolError: the payload is not what it should be.
        """
        if payload.codec != IN_BLOCKS:
            return decode(round_id.unit, payload), 0
        if len(payload.buffers) != 1 or payload.buffers[0].size != 1 or payload.dtype != _DTYPE.str:
            raise ProtocolError(f"{round_id}: {sender} ends its blocks without their size")
        _cut(round_id.unit, int(payload.buffers[0][0]))
        place = sender, round_id.scope, round_id.unit
        with self._lock:
            closed = self._blocks.close(sender, round_id)
            number, values, wire_bytes = self._newest.get(place, (-1, None, 0))
            if not closed.again:
                values, wire_bytes = self._values_of(sender, round_id), sum(closed.blocks.values())
                del self._open[sender, round_id]
                if round_id.number > number:
                    self._newest[place] = round_id.number, values, wire_bytes
            elif values is None or number != round_id.number:
                values, wire_bytes = np.zeros(round_id.unit.count, _DTYPE), 0
        return values, wire_bytes

    def counted(self, sender: str, round_id: RoundId) -> frozenset[int] | None:
        """Returns which blocks of a sender were counted in a round; None where it sent none."""
        with self._lock:
            return self._blocks.counted(sender, round_id)

    def answered(self, sender: str, round_id: RoundId) -> None:
        """Forgets the values of a round that has a result: who sends its end again is given that."""
        place = sender, round_id.scope, round_id.unit
        with self._lock:
            if place in self._newest and self._newest[place][0] == round_id.number:
                del self._newest[place]

    def tick(self, now: float) -> None:
        """Drops what has waited for its end for too long; called from time to time."""
        with self._lock:
            for dropped in self._blocks.tick(now):
                self._open.pop(dropped, None)

    def _values_of(self, sender: str, round_id: RoundId) -> Array:
        values = self._open.get((sender, round_id))
        if values is None:
            values = self._open[sender, round_id] = np.zeros(round_id.unit.count, _DTYPE)
        return values


def _cut(unit: Unit, block: int) -> Cut:
    if not 0 < unit.count <= JOINED.body_bytes // _DTYPE.itemsize or block < 1:
        raise ProtocolError(f"{unit.count} values of {unit.key} in blocks of {block}")
    return Cut(unit.count, block)
