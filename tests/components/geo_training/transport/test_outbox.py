"""The most urgent message leaves next, equals in their order, and nothing is lost or doubled."""

import threading

import numpy as np
import pytest
from geokfp.components.geo_training.errors import LinkClosedError
from geokfp.components.geo_training.transport.outbox import BEFORE_ALL, LAST, MOST_BYTES, Outbox, Urgency
from geokfp.components.geo_training.wire.messages import Answer, Payload
from geokfp.components.geo_training.wire.units import TREE, RoundId, Unit
from hypothesis import given
from hypothesis import strategies as st

LARGE = 5000
"""Values of a message that no caller sends by itself."""


def message(number: int, count: int = LARGE) -> Answer:
    values = np.zeros(count, np.float32)
    return Answer(RoundId(TREE, Unit("gradient", 0, count), number), 1.0, Payload("dense", "<f4", (values,)))


class Gate:
    """A connection that lets one message pass when it is told to."""

    def __init__(self, fails: bool = False) -> None:
        self.sent, self.closed = [], False
        self.came, self._open = threading.Semaphore(0), threading.Semaphore(0)
        self._fails = fails

    def send(self, message) -> None:
        self.came.release()
        assert self._open.acquire(timeout=10)
        if self._fails:
            raise LinkClosedError("gate: closed")
        self.sent.append(message.round.number)

    def let_pass(self, count: int = 1) -> None:
        self._open.release(count)

    def wait_for_sender(self) -> None:
        assert self.came.acquire(timeout=10)

    def close(self) -> None:
        self.closed = True


@given(st.lists(st.one_of(st.integers(BEFORE_ALL, 3), st.none()), max_size=60))
def test_the_most_urgent_is_next_and_equals_keep_their_order(script):
    """A number posts a message of that priority, None sends one: held against a plain sort."""
    waiting, plain, number = Urgency(), [], 0
    for step in script:
        if step is not None:
            waiting.put(message(number, 1), step)
            plain.append((step, number))
            number += 1
        elif plain:
            first = min(plain)
            plain.remove(first)
            assert waiting.take().round.number == first[1]
        assert len(waiting) == len(plain)
        assert waiting.num_bytes == 4 * len(plain)


@given(st.lists(st.integers(BEFORE_ALL, 4), min_size=1, max_size=12))
def test_what_waits_behind_a_slow_message_leaves_by_urgency(priorities):
    gate = Gate()
    outbox = Outbox(gate, "test")
    outbox.post(message(0), LAST)
    gate.wait_for_sender()
    for number, priority in enumerate(priorities, start=1):
        outbox.post(message(number), priority)
    gate.let_pass(len(priorities) + 1)
    outbox.close(10.0)
    behind = sorted(range(1, len(priorities) + 1), key=lambda number: (priorities[number - 1], number))
    assert gate.sent == [0, *behind]
    assert gate.closed


def test_a_small_urgent_message_needs_no_other_thread():
    gate = Gate()
    outbox = Outbox(gate, "test")
    gate.let_pass()
    before = threading.enumerate()
    outbox.post(message(0, 1))
    assert gate.sent == [0]
    assert set(threading.enumerate()) <= set(before)  # those of earlier tests may be ending
    outbox.close(0)


def test_an_error_closes_the_connection_and_forgets_what_waits():
    gate = Gate(fails=True)
    outbox = Outbox(gate, "test")
    outbox.post(message(0), 1)
    gate.wait_for_sender()
    outbox.post(message(1), 1)
    gate.let_pass(2)
    outbox.close(10.0)
    outbox.post(message(2))
    assert gate.closed
    assert gate.sent == []


def test_closing_does_not_wait_longer_than_it_is_told():
    gate = Gate()
    outbox = Outbox(gate, "test")
    outbox.post(message(0), 1)
    gate.wait_for_sender()
    outbox.post(message(1), 1)
    outbox.close(0.01)
    assert gate.closed
    gate.let_pass(2)
    assert 1 not in gate.sent


def test_who_brings_more_than_may_wait_is_held_up_until_there_is_room():
    gate, done = Gate(), threading.Event()
    outbox = Outbox(gate, "test")
    half = MOST_BYTES // 4 // 2 + 1

    def post() -> None:
        for number in range(3):
            outbox.post(message(number, half), 1)
        done.set()

    poster = threading.Thread(target=post)
    poster.start()
    gate.wait_for_sender()  # one is being sent, one waits, and the third has no room
    assert not done.wait(0.05)
    gate.let_pass(3)
    poster.join(10)
    assert done.is_set()
    outbox.close(10.0)
    assert gate.sent == [0, 1, 2]


@pytest.mark.parametrize("priority", [BEFORE_ALL, LAST])
def test_the_reason_to_end_passes_all_and_the_farewell_nothing(priority):
    gate = Gate()
    outbox = Outbox(gate, "test")
    outbox.post(message(0), 1)
    gate.wait_for_sender()
    outbox.post(message(1), 1)
    outbox.post(message(2), priority)
    gate.let_pass(3)
    outbox.close(10.0)
    assert gate.sent == ([0, 2, 1] if priority == BEFORE_ALL else [0, 1, 2])
