"""Who comes when the others have begun: from which round on, with which weights. Pure, without a network."""

import numpy as np
import pytest
from geokfp.components.geo_training.errors import ProtocolError
from geokfp.components.geo_training.nodes.entering import Entrances, Entry, Question
from geokfp.components.geo_training.nodes.given import Given
from geokfp.components.geo_training.nodes.membership import Members
from geokfp.components.geo_training.nodes.rounds import Contribution, Rounds
from geokfp.components.geo_training.nodes.rules import All
from geokfp.components.geo_training.scheduling import transmission
from geokfp.components.geo_training.synchronization import synchronization
from geokfp.components.geo_training.wire.messages import Join
from geokfp.components.geo_training.wire.units import OWN, TREE, RoundId, Unit
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

ONE, TWO = "site-0/trainer-0", "site-0/trainer-1"
A, B = Unit("a", 0, 2), Unit("b", 0, 1)
ENTRY = Entry(changes="delta")


def delta(unit, number, scope=TREE):
    return RoundId(scope, Unit(f"delta {unit.key}", unit.offset, unit.count), number)


class Door:
    """A site of two workers, of which each round ends at once where it has come to both."""

    def __init__(self, entry=ENTRY):
        self.rounds, self.members, self.given = (
            Rounds(lambda _round: All()),
            Members((ONE, TWO), 5.0),
            Given(),
        )
        self.entrances = Entrances(entry, self.members, self.rounds, self.given)
        for name in (ONE, TWO):
            assert self.entrances.admit(Join(name, "run", 1)) is None

    def first(self, unit, values):
        round_id = RoundId(TREE, Unit(f"weights {unit.key}", unit.offset, unit.count), 0)
        self.entrances.note(round_id, np.array(values, np.float32))

    def bring(self, name, unit, number):
        one = Contribution(name, frozenset({name}), 1.0, 9.0, None)
        self.rounds.offer(delta(unit, number), one, frozenset((ONE, TWO)), 0.0)

    def settle(self, unit, number, change):
        round_id = delta(unit, number)
        self.rounds.settle(round_id, "answer")
        self.entrances.note(round_id, np.array(change, np.float32))


def question(peer, unit):
    return Question(peer, RoundId(TREE, Unit(f"entering weights {unit.key}", unit.offset, unit.count), 0))


def begun(entry=ENTRY):
    """Both are in round 0 of both tensors, the second is in round 1 of one of them too; then it dies."""
    door = Door(entry)
    for unit in (A, B):
        door.first(unit, [1.0] * unit.count)
        for name in (ONE, TWO):
            door.bring(name, unit, 0)
        door.settle(unit, 0, [0.5] * unit.count)
    door.bring(TWO, A, 1)
    return door


def test_a_new_process_begins_after_all_rounds_in_which_its_name_can_have_a_part():
    door = begun()
    assert door.entrances.admit(Join(TWO, "run", 2)) == 2
    assert door.members.outside(TREE, 1) == {TWO}
    assert door.entrances.admit(Join(TWO, "run", 2)) == 2  # the same process has lost its connection
    assert door.entrances.admit(Join(ONE, "run", 1, has_begun=True)) is None
    with pytest.raises(ProtocolError, match="an earlier process"):
        door.entrances.admit(Join(TWO, "run", 1, has_begun=True))


def test_it_is_given_the_weights_before_that_round_once_they_are_there_and_fills_no_gap_but_its_own():
    door = begun()
    door.entrances.admit(Join(TWO, "run", 2))
    assert door.entrances.ask(question(TWO, A)) == [delta(A, 1)]
    assert door.entrances.ask(question(TWO, B)) == [delta(B, 1)]
    assert list(door.entrances.answers()) == []
    for unit in (A, B):
        door.bring(ONE, unit, 1)
    door.bring(TWO, B, 1)  # without values: what its earlier process did not bring nobody will
    for unit in (A, B):
        door.settle(unit, 1, [0.25] * unit.count)
    answers = dict(door.entrances.answers())
    assert {one.rounds for one in answers.values()} == {2}
    np.testing.assert_array_equal(answers[question(TWO, A)].values, np.full(2, 1.75, np.float32))
    assert list(door.entrances.answers()) == []


def test_before_anything_was_given_to_all_it_begins_with_them():
    door = Door()
    assert door.entrances.admit(Join(TWO, "run", 2)) is None


def test_it_cannot_come_where_nobody_has_its_weights_or_others_have_ended():
    door = begun(Entry(refused="the optimizers have it"))
    with pytest.raises(
        ProtocolError, match=f"{TWO} comes after the others have begun: the optimizers have it"
    ):
        door.entrances.admit(Join(TWO, "run", 2))
    door = begun()
    door.members.leave(ONE)
    with pytest.raises(ProtocolError, match="comes when others have ended"):
        door.entrances.admit(Join(TWO, "run", 2))


changes = hnp.arrays(np.float32, 2, elements=st.floats(-1e3, 1e3, width=32))


@given(changes, st.lists(st.tuples(st.integers(0, 5), changes | st.none()), max_size=20))
def test_given_weights_are_those_of_a_worker_that_adds_each_round_once(first, results):
    held, weights, number = Given(), first.copy(), 0
    held.begin(A, first)
    for at, change in results:
        held.add(delta(A, at), change)
        if at >= number:
            number = at + 1
            weights = weights if change is None else weights + change
    kept = Given()
    kept.load_state(held.state())
    for one in (held, kept):
        assert one.weights(TREE, A).rounds == number
        np.testing.assert_array_equal(one.weights(TREE, A).values, weights)


def test_a_site_with_rounds_of_its_own_has_weights_of_its_own():
    held, own = Given(), f"{OWN}site-0"
    held.begin(A, np.zeros(2, np.float32))
    held.add(delta(A, 0, own), np.ones(2, np.float32))
    np.testing.assert_array_equal(held.weights(own, A).values, np.ones(2))
    np.testing.assert_array_equal(held.weights(f"{OWN}site-1", A).values, np.zeros(2))


@pytest.mark.parametrize(
    ("reason", "says"),
    [
        (synchronization("fsa").cannot_enter, "only the others have"),
        (synchronization("esync").cannot_enter, "plans are made"),
        (synchronization("auto").cannot_enter, "plans are made"),
        (synchronization("hfa + streamed").cannot_enter, "the fragments of streamed"),
        (transmission("p3").cannot_enter, "all agreed on slices at the start"),
        (transmission("fifo + multigps(shards=2)").cannot_enter, "several roots hold the weights"),
        *(
            (synchronization(text).cannot_enter, "")
            for text in ("fsa(optimizer=adam)", "mixed", "hfa", "nbsync")
        ),
        *((transmission(text).cannot_enter, "") for text in ("fifo", "p3(rate_mbit=20)")),
    ],
)
def test_what_it_cannot_come_with_is_said(reason, says):
    assert reason.startswith(says)
    assert bool(reason) == bool(says)
