"""The messages of what travels in blocks, on the reliable channel or in datagrams; see `messages`."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from .heads import (
    Array,
    Payload,
    fields_of,
    listed,
    natural,
    payload_from_head,
    payload_to_head,
    round_from_head,
    round_to_head,
)
from .units import RoundId

IN_BLOCKS = "blocks"
"""Codec of a push that is the end marker of blocks: one buffer, uint32, with the values of a block."""

LINK_BYTES, KEY_BYTES = 8, 32
MOST_BLOCKS = 1 << 24


@dataclass(frozen=True, slots=True)
class Blocks:
    """Some blocks of a unit.

    Attributes:
        round: the round that they are for.
        block: values of a block; of an answer, bytes.
        numbers: which blocks, by number.
        payload: their values, one after the other.
    """

    round: RoundId
    block: int
    numbers: tuple[int, ...]
    payload: Payload


@dataclass(frozen=True, slots=True)
class Received:
    """Tells the sender of blocks which have come; those of a push that are not named were not counted.

    Attributes:
        round: the round.
        numbers: the blocks.
    """

    round: RoundId
    numbers: frozenset[int]


@dataclass(frozen=True, slots=True)
class Beside:
    """Opens a channel for datagrams beside this connection.

    Attributes:
        link: what its datagrams begin with.
        key: by which they are told from foreign ones.
    """

    link: bytes
    key: bytes


@dataclass(frozen=True, slots=True)
class Probe:
    """A datagram that says nothing but that it came through; the peer sends one back."""


def blocks_to_head(message: Blocks) -> list[Any]:
    """Returns the head of `Blocks`."""
    round_id, payload = round_to_head(message.round), payload_to_head(message.payload)
    return [round_id, message.block, list(message.numbers), payload]


def blocks_from_head(fields: list[Any], body: Array) -> Blocks:
    """Reads the head of `Blocks`."""
    round_id, block, numbers, payload = fields_of(fields, 4)
    return Blocks(
        round_from_head(round_id),
        natural(block),
        tuple(natural(number) for number in listed(numbers)),
        payload_from_head(payload, body),
    )


def received_to_head(message: Received) -> list[Any]:
    """Returns the head of `Received`: the numbers as bits, the first in the lowest."""
    bits = np.zeros(max(message.numbers, default=-1) + 1, np.uint8)
    bits[list(message.numbers)] = 1
    return [round_to_head(message.round), np.packbits(bits, bitorder="little").tobytes()]


def received_from_head(fields: list[Any]) -> Received:
    """Reads the head of `Received`."""
    round_id, packed = fields_of(fields, 2)
    bits = np.unpackbits(np.frombuffer(_bytes(packed, MOST_BLOCKS // 8), np.uint8), bitorder="little")
    return Received(round_from_head(round_id), frozenset(np.flatnonzero(bits).tolist()))


def beside_from_head(fields: list[Any]) -> Beside:
    """Reads the head of `Beside`."""
    link, key = (_bytes(value, KEY_BYTES) for value in fields_of(fields, 2))
    if len(link) != LINK_BYTES or len(key) != KEY_BYTES:
        raise ValueError(f"a link of {len(link)} and a key of {len(key)} bytes")
    return Beside(link, key)


def _bytes(value: Any, most: int) -> bytes:
    if not isinstance(value, bytes) or len(value) > most:
        raise ValueError(f"at most {most} bytes are needed, not {value!r:.40}")
    return value
