"""Bytes that no honest peer sends: random ones, and messages with something changed."""

import struct
from collections.abc import Sequence

import numpy as np
from geokfp.components.geo_training.wire.messages import (
    MAGIC,
    VERSION,
    Answer,
    Join,
    Leave,
    Message,
    Missing,
    Payload,
    Pull,
    Push,
    Refusal,
    TrafficQuery,
    TrafficReport,
    Welcome,
    encode,
)
from geokfp.components.geo_training.wire.units import RoundId, Unit

_HEADER = struct.Struct("<4sBBHIQ")
_NOWHERE = RoundId("moon", Unit("gradient w", 0, 64), 3)
_VALUES = Payload("dense", "<f4", (np.arange(64, dtype=np.float32),))
_EXTREMES = (0, 1, 4096, 4097, (1 << 20) + 1, 1 << 26, (1 << 26) + 1, 1 << 31, (1 << 32) - 1)


def messages(sender: str) -> tuple[Message, ...]:
    """Messages of every kind that a node must refuse as they are: of another run, about rounds of nowhere."""
    return (
        Join(sender, "another run"),
        Welcome(sender),
        Push(sender, _NOWHERE, "mean", 2.0, 30.0, (sender,), _VALUES),
        Answer(_NOWHERE, 2.0, _VALUES),
        Missing(_NOWHERE),
        TrafficReport(((sender, 1, 2),)),
    )


def frame(message: Message) -> bytes:
    return b"".join(bytes(piece) for piece in encode(message))


BEFORE_JOIN = tuple(
    frame(message)
    for message in (*messages("site-1"), Pull(_NOWHERE), Leave("site-1"), Refusal("no"), TrafficQuery())
)
"""Without having joined nothing of this is taken."""
AFTER_JOIN = tuple(map(frame, messages("site-1")))
"""What is refused of a peer that has joined."""


def hostile(draw: np.random.Generator, frames: Sequence[bytes]) -> bytes:
    """Returns random bytes, or one of some frames with something changed."""
    if draw.random() < 0.3:
        return draw.bytes(int(draw.integers(0, 400)))
    changed = bytearray(frames[draw.integers(len(frames))])
    for _ in range(draw.integers(1, 4)):
        if len(changed) < _HEADER.size:
            break
        match draw.integers(5):
            case 0:
                changed[draw.integers(len(changed))] ^= 1 << draw.integers(8)
            case 1:
                del changed[draw.integers(len(changed)) :]
            case 2:
                at = int(draw.integers(len(changed)))
                changed[at:at] = draw.bytes(int(draw.integers(1, 60)))
            case 3:
                lengths = (_EXTREMES[i] for i in draw.integers(len(_EXTREMES), size=2))
                code, buffers = int(draw.integers(0, 16)), int(draw.integers(0, 20))
                changed[: _HEADER.size] = _HEADER.pack(MAGIC, VERSION, code, buffers, *lengths)
            case _:
                at = int(draw.integers(len(changed)))
                changed[at : at + 8] = bytes([(0xDD, 0xC6, 0xDF, 0xFF)[draw.integers(4)]]) + b"\xff" * 4
    return bytes(changed)
