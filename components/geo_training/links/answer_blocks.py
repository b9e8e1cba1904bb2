"""Answers in blocks: cut by the node that gives them, put together by the one that asked. No networks.

The bytes of the payload's buffers, one after the other, are cut; a block means nothing alone. The answer that
follows them has the codec `cut/...` of the payload and one buffer, int64: bytes of a block, then for each
buffer the number of its dtype and its values.
"""

import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from ..errors import ProtocolError
from ..scheduling.importance import Cut
from ..scheduling.reassembly import Reassembly
from ..wire.block_messages import Blocks, Received
from ..wire.messages import JOINED, MAX_BUFFERS, Answer, Array, Payload

_CUT = "cut/"
_DTYPES = ("<f2", "<f4", "<f8", "|i1", "|u1", "<u2", "<i4", "<u4", "<i8")
_HOLD_S, _MOST_BYTES = 600.0, 1 << 30
_SENDER = "peer"


@dataclass(frozen=True, slots=True)
class CutAnswer:
    """An answer that travels in blocks, which are made as they are sent: of what all are sent, one is held.

    Attributes:
        marker: the answer that follows the blocks.
        plain: the bytes of each buffer.
        cut: how they are cut, one after the other.
    """

    marker: Answer
    plain: tuple[Array, ...]
    cut: Cut

    @property
    def blocks(self) -> Iterator[Blocks]:
        """The blocks, each in a message of its own."""
        return map(self.block, range(self.cut.num_blocks))

    def block(self, number: int) -> Blocks:
        """Returns one of them; its bytes are those of the answer where they lie in one buffer."""
        span, pieces, start = self.cut.span(number), [], 0
        for buffer in self.plain:
            piece = buffer[max(0, span.start - start) : max(0, span.stop - start)]
            start += buffer.size
            if piece.size:
                pieces.append(piece)
        values = pieces[0] if len(pieces) == 1 else np.concatenate(pieces)
        return Blocks(self.marker.round, self.cut.block, (number,), Payload("dense", "|u1", (values,)))


def cut_answer(answer: Answer, block_bytes: int) -> CutAnswer:
    """Cuts an answer whose payload is not empty."""
    buffers = [np.ascontiguousarray(b, b.dtype.newbyteorder("<")) for b in answer.payload.buffers]
    layout = [block_bytes]
    for buffer in buffers:
        layout += [_DTYPES.index(buffer.dtype.newbyteorder("<").str), buffer.size]
    payload = Payload(_CUT + answer.payload.codec, answer.payload.dtype, (np.array(layout, "<i8"),))
    return CutAnswer(
        replace(answer, payload=payload),
        tuple(buffer.view(np.uint8) for buffer in buffers),
        Cut(sum(buffer.nbytes for buffer in buffers), block_bytes),
    )


def is_cut(answer: Answer) -> bool:
    """Tells whether an answer is the one that follows its blocks."""
    return answer.payload.codec.startswith(_CUT)


def block_bytes(payload: Payload) -> int:
    """Returns the bytes of the blocks that an answer with this payload only ends; 0 where it has none."""
    if not payload.codec.startswith(_CUT):
        return 0
    layout = payload.buffers[0].tolist()
    return sum(
        np.dtype(_DTYPES[kind]).itemsize * count
        for kind, count in zip(layout[1::2], layout[2::2], strict=True)
    )


class AnswerInbox:
    """Answers that come in blocks to one node; any thread may call it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._blocks: Reassembly[Array] = Reassembly(_HOLD_S, _MOST_BYTES)

    def take(self, message: Blocks, now: float) -> None:
        """Keeps blocks until the answer that follows them.

        Raises:
            ProtocolError: they are no blocks of an answer.
        """
        buffers = message.payload.buffers
        if len(message.numbers) != 1 or len(buffers) != 1 or buffers[0].dtype != np.uint8:
            raise ProtocolError(f"{message.round}: a block of an answer needs a number and bytes")
        with self._lock:
            self._blocks.tick(now)
            self._blocks.add(_SENDER, message.round, message.numbers[0], buffers[0], buffers[0].nbytes, now)

    def whole(self, answer: Answer) -> tuple[Answer | None, Received | None]:
        """Puts an answer together.

        Returns:
            The answer, None while blocks are missing; and what the sender is to be told, None for nothing.

        Raises:
            ProtocolError: the blocks are not those that the answer announces.
        """
        if not is_cut(answer):
            return answer, None
        block, dtypes, counts = _layout(answer)
        sizes = [np.dtype(dtype).itemsize * count for dtype, count in zip(dtypes, counts, strict=True)]
        cut = Cut(sum(sizes), block)
        with self._lock:
            missing = set(self._blocks.missing(_SENDER, answer.round, range(cut.num_blocks)))
            received = Received(answer.round, frozenset(range(cut.num_blocks)) - missing)
            if missing:
                return None, received
            found = self._blocks.close(_SENDER, answer.round).blocks
        plain = np.concatenate([found[number] for number in range(cut.num_blocks)])
        if plain.size != cut.count:
            raise ProtocolError(f"{answer.round}: {plain.size} bytes came, {cut.count} were announced")
        stops = np.cumsum(sizes)
        buffers = tuple(
            plain[stop - size : stop].copy().view(dtype)
            for dtype, size, stop in zip(dtypes, sizes, stops, strict=True)
        )
        payload = Payload(answer.payload.codec.removeprefix(_CUT), answer.payload.dtype, buffers)
        return replace(answer, payload=payload), received


def _layout(answer: Answer) -> tuple[int, list[str], list[int]]:
    buffers = answer.payload.buffers
    if len(buffers) != 1 or buffers[0].dtype.str != "<i8" or not 3 <= buffers[0].size <= 2 * MAX_BUFFERS + 1:
        raise ProtocolError(f"{answer.round}: an answer in blocks needs its layout")
    block, *rest = buffers[0].tolist()
    kinds, counts = rest[::2], rest[1::2]
    fits = all(0 <= kind < len(_DTYPES) for kind in kinds) and all(
        0 <= count <= JOINED.body_bytes for count in counts
    )
    if block < 1 or len(kinds) != len(counts) or not fits or not 0 < sum(counts) <= JOINED.body_bytes:
        raise ProtocolError(f"{answer.round}: an answer in blocks of {block} bytes has no layout")
    return block, [_DTYPES[kind] for kind in kinds], counts
