"""The messages between nodes and their bytes, version 2. Never pickle. Knows nothing of sockets or rounds.

A frame::

    header  20 bytes  magic "GKFP", version u8, type u8, buffers u16, head bytes u32, body bytes u64
    head    msgpack array: the fields of the message in the order of its class
    body    raw little-endian buffers, one after the other; their dtypes and lengths are in the head

Lengths are held against `Limits` before anything is allocated. Whatever is wrong with the bytes raises
`FrameError`.
"""

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import msgpack
import numpy as np

from ..errors import FrameError
from .block_messages import (
    Beside,
    Blocks,
    Probe,
    Received,
    beside_from_head,
    blocks_from_head,
    blocks_to_head,
    received_from_head,
    received_to_head,
)
from .heads import ABSENT as ABSENT
from .heads import MAX_NAME_CHARACTERS
from .heads import NOTHING as NOTHING
from .heads import Array as Array
from .heads import Payload as Payload
from .heads import fields_of as _fields
from .heads import listed as _list
from .heads import natural as _natural
from .heads import number as _number
from .heads import payload_from_head as _payload_from_head
from .heads import payload_to_head as _payload_to_head
from .heads import round_from_head as _round_from_head
from .heads import round_to_head as _round_to_head
from .heads import text as _text
from .relay_messages import (
    Measured,
    Plan,
    Receipt,
    Without,
    measured_from_head,
    measured_to_head,
    plan_from_head,
    plan_to_head,
    receipt_from_head,
    receipt_to_head,
    without_from_head,
    without_to_head,
)
from .units import RoundId

MAGIC = b"GKFP"
VERSION = 2
MAX_BUFFERS = 16

Bytes: TypeAlias = bytes | memoryview
_HEADER = struct.Struct("<4sBBHIQ")


@dataclass(frozen=True, slots=True)
class Limits:
    """What a frame may hold, checked before allocation."""

    head_bytes: int
    body_bytes: int


BEFORE_JOIN = Limits(head_bytes=4096, body_bytes=0)
"""For a peer that has not said who it is."""

JOINED = Limits(head_bytes=1 << 20, body_bytes=1 << 26)
"""For a peer that has joined; a client cuts what is larger into slices."""


@dataclass(frozen=True, slots=True)
class Join:
    """First frame of the dialling side.

    Attributes:
        sender: who it is.
        run: of which run.
        incarnation: of its process; a later one of the same name has a higher number.
        has_begun: whether it has taken part in rounds of weights' changes, and goes on with them.
    """

    sender: str
    run: str
    incarnation: int = 0
    has_begun: bool = False


@dataclass(frozen=True, slots=True)
class Welcome:
    """Reply to a `Join` that was accepted.

    Attributes:
        sender: who accepts.
        first_round: the round in which one takes part first that comes after the others have begun, and asks
            for their weights; None for who begins with all, or goes on.
    """

    sender: str
    first_round: int | None = None


@dataclass(frozen=True, slots=True)
class Push:
    """One contribution to a round; (sender, round) numbers it, so that a repeat is known as one.

    Attributes:
        sender: the node that sends it.
        round: the round that it is for.
        reduction: name of the rule by which contributions are merged.
        weight: number of samples behind the values.
        wait_s: seconds that the round may wait for the others, from when this came.
        covers: the workers whose contributions are merged in it.
        payload: the values.
        priority: how urgent the round is, on every link up and down; 0 is the most.
    """

    sender: str
    round: RoundId
    reduction: str
    weight: float
    wait_s: float
    covers: tuple[str, ...]
    payload: Payload
    priority: int = 0


@dataclass(frozen=True, slots=True)
class Pull:
    """Asks for the result of a round; answered when there is one, or by `Missing`."""

    round: RoundId


@dataclass(frozen=True, slots=True)
class Missing:
    """Reply to a `Pull`: nothing of yours is counted in that round, push it again."""

    round: RoundId


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of a round, the same for all that took part.

    Attributes:
        round: the round.
        weight: samples behind the result.
        payload: the result's values.
        priority: that of the pushes.
    """

    round: RoundId
    weight: float
    payload: Payload
    priority: int = 0


@dataclass(frozen=True, slots=True)
class Leave:
    """Last frame of a peer that has done its part."""

    sender: str


@dataclass(frozen=True, slots=True)
class Refusal:
    """The reason why the sender ends the connection, in one line."""

    reason: str


@dataclass(frozen=True, slots=True)
class TrafficQuery:
    """Asks a node for its bytes per link."""


@dataclass(frozen=True, slots=True)
class TrafficReport:
    """Reply to a `TrafficQuery`.

    Attributes:
        links: (peer, bytes sent, bytes received) for each peer, since the node started.
    """

    links: tuple[tuple[str, int, int], ...]


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """Says that the sender lives."""


Message: TypeAlias = (
    Join
    | Welcome
    | Push
    | Pull
    | Missing
    | Answer
    | Leave
    | Refusal
    | TrafficQuery
    | TrafficReport
    | Blocks
    | Received
    | Beside
    | Probe
    | Heartbeat
    | Plan
    | Receipt
    | Measured
    | Without
)


def encode(message: Message) -> list[Bytes]:
    """Returns the frame of `message` as pieces to send one after the other; buffers are not copied."""
    code, to_head, _ = _TYPES_BY_CLASS[type(message)]
    head = msgpack.packb(to_head(message))
    payload = getattr(message, "payload", NOTHING)
    header = _HEADER.pack(MAGIC, VERSION, code, len(payload.buffers), len(head), payload.num_bytes)
    return [header + head, *(_little_endian_bytes(buffer) for buffer in payload.buffers)]


def read_message(
    read_into: Callable[[memoryview], None],
    limits: Limits,
    before_values: Callable[[RoundId, int], None] = lambda _round, _bytes: None,
) -> tuple[Message, int]:
    """Reads one frame.

    Args:
        read_into: fills the memory it is given with the next bytes, or raises an error of the link.
        limits: what the frame may hold.
        before_values: called with the round and the bytes of a contribution's values, before there is memory
            for them.

    Returns:
        The message, whose buffers are views of the bytes read, and the frame's length in bytes.

    Raises:
        FrameError: the bytes are no message, or more than `limits` allow.
    """
    header = bytearray(_HEADER.size)
    read_into(memoryview(header))
    magic, version, code, num_buffers, head_bytes, body_bytes = _HEADER.unpack(header)
    if magic != MAGIC:
        raise FrameError(f"frame starts with {bytes(magic)!r}, {MAGIC!r} is needed")
    if version != VERSION:
        raise FrameError(f"frame of version {version}, this release speaks {VERSION}")
    if code not in _TYPES_BY_CODE:
        raise FrameError(f"frame of type {code}, 1 to {len(_TYPES_BY_CODE)} exist")
    if head_bytes > limits.head_bytes or body_bytes > limits.body_bytes or num_buffers > MAX_BUFFERS:
        raise FrameError(
            f"frame announces {num_buffers} buffers, {head_bytes} + {body_bytes} bytes: too large"
        )
    head = bytearray(head_bytes)
    read_into(memoryview(head))
    fields = _unpack(head)
    if body_bytes and (round_id := _round_of(code, fields)) is not None:
        before_values(round_id, body_bytes)
    body = np.empty(body_bytes, np.uint8)
    if body_bytes:
        read_into(body.data)
    message = _build(code, fields, body, num_buffers)
    return message, _HEADER.size + head_bytes + body_bytes


def _little_endian_bytes(buffer: Array) -> memoryview:
    little = np.ascontiguousarray(buffer, dtype=buffer.dtype.newbyteorder("<"))
    return little.data.cast("B") if little.size else memoryview(b"")


def _unpack(head: bytearray) -> list[Any]:
    try:
        fields = msgpack.unpackb(head, strict_map_key=True, use_list=True)
    except (ValueError, msgpack.exceptions.UnpackException, RecursionError) as error:
        raise FrameError(f"head is not msgpack: {error}") from error
    if not isinstance(fields, list):
        raise FrameError(f"head is a {type(fields).__name__}, an array is needed")
    return fields


def _round_of(code: int, fields: list[Any]) -> RoundId | None:
    """Returns the round that a contribution, or some blocks of one, is for; None where it is none."""
    place = {Push: 1, Blocks: 0}.get(_TYPES_BY_CODE[code][0])
    try:
        return None if place is None else _round_from_head(fields[place])
    except (ValueError, TypeError, IndexError):
        return None  # what is wrong with it is said when all has come


def _build(code: int, fields: list[Any], body: Array, num_buffers: int) -> Message:
    name, _, from_head = _TYPES_BY_CODE[code]
    try:
        message: Message = from_head(fields, body)
    except (ValueError, TypeError, IndexError) as error:
        raise FrameError(f"head of {name.__name__}: {error}".splitlines()[0]) from error
    payload = getattr(message, "payload", NOTHING)
    if len(payload.buffers) != num_buffers or payload.num_bytes != body.nbytes:
        raise FrameError(f"head of {name.__name__} describes other buffers than its header")
    return message


def _join_from_head(fields: list[Any]) -> Join:
    sender, run, incarnation, has_begun = _fields(fields, 4)
    if not isinstance(has_begun, bool):
        raise ValueError(f"true or false is needed, not {has_begun!r:.40}")
    return Join(_text(sender), _text(run), _natural(incarnation), has_begun)


def _push_from_head(fields: list[Any], body: Array) -> Push:
    sender, round_id, reduction, weight, wait_s, covers, payload, priority = _fields(fields, 8)
    return Push(
        sender=_text(sender),
        round=_round_from_head(round_id),
        reduction=_text(reduction),
        weight=_number(weight),
        wait_s=_number(wait_s),
        covers=tuple(_text(name) for name in _list(covers)),
        payload=_payload_from_head(payload, body),
        priority=_natural(priority),
    )


def _push_to_head(push: Push) -> list[Any]:
    round_id, payload = _round_to_head(push.round), _payload_to_head(push.payload)
    numbers = [float(push.weight), float(push.wait_s)]
    return [push.sender, round_id, push.reduction, *numbers, list(push.covers), payload, push.priority]


def _answer_from_head(fields: list[Any], body: Array) -> Answer:
    round_id, weight, payload, priority = _fields(fields, 4)
    values = _payload_from_head(payload, body)
    return Answer(_round_from_head(round_id), _number(weight), values, _natural(priority))


def _report_from_head(fields: list[Any]) -> TrafficReport:
    links = [_fields(link, 3) for link in _list(_fields(fields, 1)[0])]
    return TrafficReport(
        tuple((_text(peer), _natural(sent), _natural(received)) for peer, sent, received in links)
    )


_Type: TypeAlias = tuple[type, Callable[[Any], list[Any]], Callable[[list[Any], Array], Any]]
_TYPES: tuple[_Type, ...] = (
    (Join, lambda m: [m.sender, m.run, m.incarnation, m.has_begun], lambda f, _: _join_from_head(f)),
    (
        Welcome,
        lambda m: [m.sender, *([] if m.first_round is None else [m.first_round])],
        lambda f, _: Welcome(_text(f[0]), *map(_natural, _fields(f[1:], min(1, len(f[1:]))))),
    ),
    (Push, _push_to_head, _push_from_head),
    (Pull, lambda m: [_round_to_head(m.round)], lambda f, _: Pull(_round_from_head(_fields(f, 1)[0]))),
    (Missing, lambda m: [_round_to_head(m.round)], lambda f, _: Missing(_round_from_head(_fields(f, 1)[0]))),
    (
        Answer,
        lambda m: [_round_to_head(m.round), float(m.weight), _payload_to_head(m.payload), m.priority],
        _answer_from_head,
    ),
    (Leave, lambda m: [m.sender], lambda f, _: Leave(_text(_fields(f, 1)[0]))),
    (
        Refusal,
        lambda m: [m.reason[:MAX_NAME_CHARACTERS] or "no reason"],
        lambda f, _: Refusal(_text(_fields(f, 1)[0])),
    ),
    (TrafficQuery, lambda _: [], lambda f, _: TrafficQuery(*_fields(f, 0))),
    (TrafficReport, lambda m: [[list(link) for link in m.links]], lambda f, _: _report_from_head(f)),
    (Blocks, blocks_to_head, blocks_from_head),
    (Received, received_to_head, lambda f, _: received_from_head(f)),
    (Beside, lambda m: [m.link, m.key], lambda f, _: beside_from_head(f)),
    (Probe, lambda _: [], lambda f, _: Probe(*_fields(f, 0))),
    (Heartbeat, lambda _: [], lambda f, _: Heartbeat(*_fields(f, 0))),
    (Plan, plan_to_head, lambda f, _: plan_from_head(f)),
    (Receipt, receipt_to_head, lambda f, _: receipt_from_head(f)),
    (Measured, measured_to_head, lambda f, _: measured_from_head(f)),
    (Without, without_to_head, lambda f, _: without_from_head(f)),
)
_TYPES_BY_CODE = dict(enumerate(_TYPES, start=1))
_TYPES_BY_CLASS = {
    kind: (code, to_head, from_head) for code, (kind, to_head, from_head) in _TYPES_BY_CODE.items()
}
