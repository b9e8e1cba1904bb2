"""Every message round-trips; whatever else comes in is the peer's error, before much is allocated."""

import struct
from contextlib import suppress

import msgpack
import numpy as np
import pytest
from geokfp.components.geo_training.errors import FrameError, LinkClosedError
from geokfp.components.geo_training.wire.messages import (
    BEFORE_JOIN,
    JOINED,
    NOTHING,
    VERSION,
    Answer,
    Beside,
    Blocks,
    Heartbeat,
    Join,
    Leave,
    Limits,
    Missing,
    Payload,
    Probe,
    Pull,
    Push,
    Received,
    Refusal,
    TrafficQuery,
    TrafficReport,
    Welcome,
    encode,
    read_message,
)
from geokfp.components.geo_training.wire.relay_messages import Measured, Plan, Receipt, Trees, Without
from geokfp.components.geo_training.wire.units import RoundId, Unit
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from support.memory_transport import reader_of

names = st.text(min_size=1, max_size=40)
naturals = st.integers(0, 1 << 40)
weights = st.floats(0, 1e12)
units = st.builds(Unit, names, naturals, naturals)
rounds = st.builds(RoundId, names, units, naturals)
site_trees = st.builds(Trees, *2 * [st.dictionaries(names, names, max_size=3)])
arrays = st.sampled_from(["<f2", "<f4", "<f8", "|i1", "|u1", "<u2", "<i4", "<u4", "<i8"]).flatmap(
    lambda dtype: hnp.arrays(dtype, st.integers(0, 20))
)
payloads = st.builds(
    lambda codec, buffers: Payload(codec, "<f4", tuple(buffers)), names, st.lists(arrays, max_size=3)
)
messages = st.one_of(
    st.builds(Join, names, names, naturals, st.booleans()),
    st.builds(Welcome, names, st.none() | naturals),
    st.just(Heartbeat()),
    st.builds(
        Push,
        names,
        rounds,
        names,
        weights,
        weights,
        st.lists(names, max_size=3).map(tuple),
        payloads,
        naturals,
    ),
    st.builds(Pull, rounds),
    st.builds(Missing, rounds),
    st.builds(Answer, rounds, weights, payloads, naturals),
    st.builds(Leave, names),
    st.builds(Refusal, names),
    st.just(TrafficQuery()),
    st.builds(TrafficReport, st.lists(st.tuples(names, naturals, naturals), max_size=3).map(tuple)),
    st.builds(Blocks, rounds, naturals, st.lists(naturals, max_size=3).map(tuple), payloads),
    st.builds(Received, rounds, st.frozensets(st.integers(0, 200), max_size=5)),
    st.builds(Beside, st.binary(min_size=8, max_size=8), st.binary(min_size=32, max_size=32)),
    st.just(Probe()),
    st.builds(Plan, naturals, site_trees, st.lists(units, max_size=3).map(tuple), site_trees),
    st.builds(Receipt, rounds),
    st.builds(Measured, naturals, st.lists(st.tuples(names, naturals, weights), max_size=3).map(tuple)),
    st.builds(Without, rounds, st.lists(names, max_size=3).map(tuple)),
)


def frame_of(message) -> bytes:
    return b"".join(bytes(piece) for piece in encode(message))


def same(one, other) -> bool:
    """Equality that compares arrays bit for bit."""
    return type(one) is type(other) and frame_of(one) == frame_of(other)


@given(messages)
def test_every_message_round_trips(message):
    frame = frame_of(message)
    back, num_bytes = read_message(reader_of(frame), JOINED)
    assert num_bytes == len(frame)
    assert same(back, message)


@given(messages, st.data())
def test_truncated_bytes_never_make_a_message(message, data):
    frame = frame_of(message)
    cut = data.draw(st.integers(0, len(frame) - 1))
    with pytest.raises((FrameError, LinkClosedError)):
        read_message(reader_of(frame[:cut]), JOINED)


@given(messages, st.data())
def test_changed_bytes_make_a_message_or_the_peers_error(message, data):
    frame = bytearray(frame_of(message))
    for _ in range(data.draw(st.integers(1, 4))):
        frame[data.draw(st.integers(0, len(frame) - 1))] = data.draw(st.integers(0, 255))
    with suppress(FrameError, LinkClosedError):
        message, _ = read_message(reader_of(bytes(frame)), Limits(1 << 16, 1 << 16))
        assert same(read_message(reader_of(frame_of(message)), JOINED)[0], message)


@given(st.binary(max_size=200))
def test_noise_is_the_peers_error(noise):
    with pytest.raises((FrameError, LinkClosedError)):
        read_message(reader_of(noise), JOINED)


def test_a_number_of_ten_floats_costs_forty_bytes_and_a_small_head():
    values = np.arange(10, dtype=np.float32)
    push = Push(
        "site-0/trainer-0",
        RoundId("tree", Unit("gradient", 0, 10), 3),
        "mean",
        5.0,
        1.0,
        ("w",),
        payload(values),
    )
    assert push.payload.num_bytes == 40
    assert len(frame_of(push)) - 40 < 120


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"magic": b"HTTP"}, "starts with"),
        ({"version": 1}, "version 1"),
        ({"code": 99}, "type 99"),
        ({"head_bytes": 1 << 21}, "too large"),
        ({"body_bytes": 1 << 50}, "too large"),
        ({"num_buffers": 1000}, "too large"),
        ({"head": b"\xc1"}, "not msgpack"),
        ({"head": msgpack.packb({})}, "an array is needed"),
        ({"head": msgpack.packb([1, 2])}, "head of Join"),
        ({"head": msgpack.packb(["a" * 300, "run", 0, False])}, "1 to 256"),
        ({"head": msgpack.packb(["a", "run", "more"])}, "an array of 4"),
        ({"num_buffers": 1}, "other buffers"),
    ],
)
def test_a_bad_frame_is_refused_with_its_reason(changes, reason):
    head = changes.pop("head", msgpack.packb(["site-0", "run", 7, True]))
    fields = {
        "magic": b"GKFP", "version": VERSION, "code": 1,
            "num_buffers": 0, "head_bytes": len(head), "body_bytes": 0,
        **changes,
    }  # fmt: skip
    frame = struct.pack("<4sBBHIQ", *fields.values()) + head
    with pytest.raises(FrameError, match=reason):
        read_message(reader_of(frame), JOINED)


@pytest.mark.parametrize(
    ("described", "dtype"),
    [
        ([["<f4", 3]], "<f4"),
        ([["<f4", 1]], "<f4"),
        ([["O", 1]], "<f4"),
        ([["<f4", 2]], "object"),
        ([["<f4", -2]], "<f4"),
    ],
)
def test_buffers_other_than_the_body_are_refused(described, dtype):
    head = msgpack.packb([["tree", "k", 0, 2, 0], 1.0, ["dense", dtype, described]])
    frame = struct.pack("<4sBBHIQ", b"GKFP", 1, 6, 1, len(head), 8) + head + bytes(8)
    with pytest.raises(FrameError):
        read_message(reader_of(frame), JOINED)


@pytest.mark.parametrize("weight", [float("nan"), float("inf"), -1.0])
def test_a_weight_must_be_finite_and_not_negative(weight):
    answer = Answer(RoundId("tree", Unit("k", 0, 1), 0), weight, NOTHING)
    with pytest.raises(FrameError, match="finite number"):
        read_message(reader_of(frame_of(answer)), JOINED)


def test_a_peer_that_has_not_joined_cannot_make_us_allocate():
    push = Push(
        "a", RoundId("tree", Unit("k", 0, 2), 0), "sum", 1.0, 1.0, ("a",), payload(np.zeros(2, np.float32))
    )
    with pytest.raises(FrameError, match="too large"):
        read_message(reader_of(frame_of(push)), BEFORE_JOIN)


def test_buffers_are_sent_without_a_copy():
    values = np.arange(5, dtype=np.float32)
    answer = Answer(RoundId("tree", Unit("k", 0, 5), 0), 1.0, payload(values))
    assert np.shares_memory(np.frombuffer(encode(answer)[1], np.float32), values)


def payload(values: np.ndarray) -> Payload:
    return Payload("dense", "<f4", (values,))


def test_values_of_a_contribution_are_told_of_before_there_is_memory_for_them():
    round_id = RoundId("tree", Unit("gradient w", 0, 3), 7)
    payload = Payload("dense", "<f4", (np.ones(3, np.float32),))
    push = Push("a", round_id, "sum", 1.0, 9.0, ("a",), payload)
    others = [
        Push("a", round_id, "sum", 1.0, 9.0, ("a",), NOTHING),
        Answer(round_id, 1.0, payload),
        Pull(round_id),
    ]
    told = []
    for message in (push, Blocks(round_id, 3, (0,), payload), *others):
        read_message(reader_of(b"".join(encode(message))), JOINED, lambda *which: told.append(which))
    assert told == [(round_id, 12), (round_id, 12)]
    frame = b"".join(encode(push))
    with pytest.raises(RuntimeError, match="no room"):
        read_message(reader_of(frame[:-12]), JOINED, _refuse)


def _refuse(_round: RoundId, _num_bytes: int) -> None:
    raise RuntimeError("no room")
