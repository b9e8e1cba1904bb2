"""Whatever is lost, repeated or late: what was counted and what comes back are what was sent, once each."""

import numpy as np
import pytest
from geokfp.components.geo_training.compression import compression
from geokfp.components.geo_training.errors import ProtocolError
from geokfp.components.geo_training.scheduling.dgt import Dgt
from geokfp.components.geo_training.scheduling.differential import Differential
from geokfp.components.geo_training.scheduling.inbox import Inbox
from geokfp.components.geo_training.scheduling.reassembly import REMEMBERED, Reassembly
from geokfp.components.geo_training.wire.block_messages import IN_BLOCKS, Blocks
from geokfp.components.geo_training.wire.messages import Payload
from geokfp.components.geo_training.wire.units import TREE, RoundId, Unit
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

UNIT = Unit("gradient w", 0, 1500)
DGT = Dgt(fraction=0.4, min_fraction=0.1, block_bytes=256)


def round_of(number: int, unit: Unit = UNIT) -> RoundId:
    return RoundId(TREE, unit, number)


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 5), st.booleans())))
def test_a_block_is_counted_once_or_declared_not_counted(events):
    """An event is a block of a round, or that round's end marker."""
    reassembly: Reassembly[int] = Reassembly(hold_s=10.0, most_bytes=1 << 20)
    sent: dict[int, list[int]] = {}
    counted: dict[int, frozenset[int]] = {}
    for number, block, ends in events:
        if ends:
            closed = reassembly.close("a", round_of(number))
            assert closed.again == (number in counted)
            if not closed.again:
                assert set(closed.blocks) == closed.counted == set(sent.get(number, []))
            assert counted.setdefault(number, closed.counted) == closed.counted
        else:
            before = number not in counted and block not in sent.get(number, [])
            assert reassembly.add("a", round_of(number), block, block, 1, now=0.0) == before
            if before:
                sent.setdefault(number, []).append(block)
        assert reassembly.counted("a", round_of(number)) == counted.get(number)
    assert reassembly.held_bytes == sum(len(blocks) for n, blocks in sent.items() if n not in counted)


def test_blocks_without_an_end_are_dropped_in_time_and_beyond_a_size():
    reassembly: Reassembly[int] = Reassembly(hold_s=10.0, most_bytes=5)
    assert reassembly.add("a", round_of(0), 0, 0, 3, now=0.0)
    assert not reassembly.add("a", round_of(0), 1, 1, 3, now=1.0)
    reassembly.tick(10.0)
    assert reassembly.held_bytes == 3
    reassembly.tick(10.5)
    assert reassembly.held_bytes == 0
    assert reassembly.close("a", round_of(0)).counted == frozenset()


def test_a_round_that_is_long_over_counts_nothing():
    reassembly: Reassembly[int] = Reassembly(hold_s=10.0, most_bytes=5)
    reassembly.close("a", round_of(REMEMBERED))
    assert not reassembly.add("a", round_of(0), 0, 0, 1, now=0.0)
    assert reassembly.close("a", round_of(0)).again


def test_senders_units_and_scopes_are_apart():
    reassembly: Reassembly[int] = Reassembly(hold_s=10.0, most_bytes=100)
    reassembly.add("a", round_of(0), 0, 7, 1, now=0.0)
    assert reassembly.close("b", round_of(0)).blocks == {}
    assert reassembly.close("a", RoundId("own a", UNIT, 0)).blocks == {}
    assert reassembly.missing("a", round_of(0), range(3)) == [1, 2]
    assert reassembly.close("a", round_of(0)).blocks == {0: 7}


whole_vectors = hnp.arrays(
    np.float32, UNIT.count, elements=st.integers(-100, 100).map(float), fill=st.just(1.0)
)


def travelled(data, plan, inbox: Inbox) -> None:
    """Hands over the messages of a plan as a network may; the important ones come whole, before the end."""
    loose = [message for channel in plan.channels for message in channel]
    order = data.draw(st.permutations([*plan.important, *loose]), label="order")
    reliable = set(map(id, plan.important))
    for message in order:
        times = data.draw(st.integers(0, 2), label="times") if id(message) not in reliable else 1
        for _ in range(times):
            inbox.take("site", message, 0.0)


@settings(deadline=None, max_examples=30)
@given(st.lists(whole_vectors, min_size=1, max_size=4), st.data())
@pytest.mark.parametrize(
    "technique", ["none", "fp16(feedback=1)", "top_k(ratio=0.2)", "bi_sparse(ratio=0.1, momentum=0)"]
)
def test_what_was_counted_and_what_is_left_sum_to_what_was_pushed(technique, pushes, data):
    sender = Differential(DGT, compression(technique).up_blocks())
    inbox = Inbox()
    counted, late = np.zeros(UNIT.count), []
    for number, values in enumerate(pushes):
        plan = sender.plan(round_of(number), values, 1.0)
        travelled(data, plan, inbox)
        for message in late:  # of an earlier round, behind its end
            inbox.take("site", message, 0.0)
        for _ in range(data.draw(st.integers(1, 2), label="ends")):
            values, _ = inbox.values("site", round_of(number), plan.marker)
        counted += values
        sender.settle(round_of(number), inbox.counted("site", round_of(number)))
        late = list(plan.messages)
    left = sender.residual(TREE, UNIT)
    total = counted + (0 if left is None else left) + kept_by_compressors(sender)
    assert np.array_equal(total, np.sum(pushes, axis=0, dtype=float))


def kept_by_compressors(sender: Differential) -> np.ndarray:
    """Adds up the error feedback of all blocks, read from the state."""
    state = sender.state().part("blocks")
    total = np.zeros(UNIT.count)
    blocks = state.part("0").part("own").facts.get("units", [])
    for index, (_, start, count) in enumerate(blocks):
        own = state.part("0").part(str(index)).part("own").arrays
        for name in ("residual", "unsent"):
            total[start : start + count] += own.get(name, 0)
    return total


@settings(deadline=None, max_examples=20)
@given(st.lists(whole_vectors, min_size=2, max_size=4), st.data())
def test_a_sender_goes_on_from_its_state_as_it_would_have(pushes, data):
    technique = data.draw(st.sampled_from(["none", "top_k(ratio=0.2)", "bi_sparse(ratio=0.1)"]))
    one, other = (Differential(DGT, compression(technique).up_blocks()) for _ in range(2))
    *before, last = pushes
    for number, values in enumerate(before):
        plan = one.plan(round_of(number), values, 1.0)
        lost = data.draw(st.sets(st.integers(0, plan.cut.num_blocks - 1)), label="lost")
        one.settle(round_of(number), frozenset(range(plan.cut.num_blocks)) - lost)
    other.load_state(one.state())
    plans = [sender.plan(round_of(len(before)), last, 1.0) for sender in (one, other)]
    assert [m.numbers for m in plans[0].messages] == [m.numbers for m in plans[1].messages]
    for mine, theirs in zip(plans[0].messages, plans[1].messages, strict=True):
        for a, b in zip(mine.payload.buffers, theirs.payload.buffers, strict=True):
            assert np.array_equal(a, b)


def test_the_first_push_of_a_unit_and_what_may_not_lose_anything_are_reliable():
    sender = Differential(DGT, compression("none").up_blocks())
    values = np.ones(UNIT.count, np.float32)
    assert sender.plan(round_of(0), values, 1.0).num_in_datagrams == 0
    assert sender.plan(round_of(1), values, 1.0).num_in_datagrams == 14
    weights = Unit("weights w", 0, UNIT.count)
    assert sender.plan(round_of(0, weights), values, 1.0) is None
    assert sender.plan(round_of(0, Unit("gradient b", 0, 8)), values[:8], 1.0) is None
    off = Differential(Dgt(fraction=1), compression("none").up_blocks())
    assert off.plan(round_of(0), values, 1.0) is None


def test_what_is_lost_gains_no_momentum_again():
    sender = Differential(DGT, compression("bi_sparse(ratio=1, momentum=0.5)").up_blocks())
    values = np.ones(UNIT.count, np.float32)
    sender.plan(round_of(0), values, 1.0)
    sender.settle(round_of(0), frozenset())
    inbox = Inbox()
    plan = sender.plan(round_of(1), 0 * values, 1.0)
    for message in plan.messages:
        inbox.take("site", message, 0.0)
    assert np.array_equal(inbox.values("site", round_of(1), plan.marker)[0], values)


def test_dense_blocks_of_zeros_are_not_sent():
    sender = Differential(DGT, compression("none").up_blocks())
    values = np.zeros(UNIT.count, np.float32)
    values[70] = 1.0
    assert [message.numbers for message in sender.plan(round_of(0), values, 1.0).messages] == [(1,)]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"numbers": (99,)}, "not there"),
        ({"numbers": ()}, "not there"),
        ({"block": 0}, "blocks of 0"),
        ({"numbers": (1,), "payload": Payload("dense", "<f4", (np.zeros(3, "<f4"),))}, "other values"),
    ],
)
def test_what_is_no_block_of_its_unit_is_the_peers_error(change, reason):
    fields = {
        "round": round_of(0),
        "block": 64,
        "numbers": (0,),
        "payload": Payload("dense", "<f4", (np.zeros(64, "<f4"),)),
    }
    with pytest.raises(ProtocolError, match=reason):
        Inbox().take("site", Blocks(**{**fields, **change}), 0.0)
    with pytest.raises(ProtocolError, match="without their size"):
        Inbox().values("site", round_of(0), Payload(IN_BLOCKS, "<f4", ()))
