"""The values of pushes that came in blocks, at the node that they were sent to. Knows nothing of networks."""

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
        self._blocks: Reassembly[tuple[Array, int]] = Reassembly(_HOLD_S, _MOST_BYTES)

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
        stops, wire_bytes = np.cumsum(sizes), message.payload.num_bytes
        with self._lock:
            for number, size, stop in zip(message.numbers, sizes, stops, strict=True):
                block = values[stop - size : stop]
                of_block = (block, wire_bytes * size // whole.count)  # several are dense, and so alike
                self._blocks.add(sender, message.round, number, of_block, block.nbytes, now)

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
        cut = _cut(round_id.unit, int(payload.buffers[0][0]))
        with self._lock:
            closed = self._blocks.close(sender, round_id)
        values = np.zeros(cut.count, _DTYPE)
        for number, (block, _) in closed.blocks.items():
            values[cut.span(number)] = block
        return values, sum(wire_bytes for _, wire_bytes in closed.blocks.values())

    def counted(self, sender: str, round_id: RoundId) -> frozenset[int] | None:
        """Returns which blocks of a sender were counted in a round; None where it sent none."""
        with self._lock:
            return self._blocks.counted(sender, round_id)

    def tick(self, now: float) -> None:
        """Drops what has waited for its end for too long; called from time to time."""
        with self._lock:
            self._blocks.tick(now)


def _cut(unit: Unit, block: int) -> Cut:
    if not 0 < unit.count <= JOINED.body_bytes // _DTYPE.itemsize or block < 1:
        raise ProtocolError(f"{unit.count} values of {unit.key} in blocks of {block}")
    return Cut(unit.count, block)
