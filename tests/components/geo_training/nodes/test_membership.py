"""Who is dead, and from which round on who comes anew is waited for: pure, with the time as an argument."""

import pytest
from geokfp.components.geo_training.errors import ProtocolError
from geokfp.components.geo_training.nodes.membership import Members
from hypothesis import given
from hypothesis import strategies as st
from support.clock import FakeClock

NAMES = ("a", "b")


def joined(silence_s=5.0):
    members = Members(NAMES, silence_s)
    for name in NAMES:
        members.join(name, 1)
    return members


def test_a_peer_is_dead_after_its_silence_and_alive_when_it_is_back():
    members, clock = joined(), FakeClock(100.0)
    members.lose("a", clock())
    clock.advance(5.0)
    assert members.dead(clock()) == frozenset()
    clock.advance(0.1)
    assert members.dead(clock()) == {"a"}
    assert members.lost_for("a", clock()) == pytest.approx(5.1)
    members.join("a", 1)
    assert members.dead(clock()) == frozenset()
    assert members.lost_for("a", clock()) == 0.0


def test_who_was_silent_until_its_connection_was_closed_is_dead_at_once():
    members = joined()
    members.lose("b", heard=94.9)
    assert members.dead(100.0) == {"b"}


def test_who_is_connected_has_left_or_never_came_is_not_dead():
    members = Members(("connected", "left", "never"), 5.0)
    members.join("connected", 1)
    members.join("left", 1)
    members.leave("left")
    members.lose("left", 0.0)
    assert members.dead(1e6) == frozenset()
    assert members.have_left == {"left"}


def test_where_all_had_come_before_who_stays_away_is_dead():
    members = Members(NAMES, 5.0)
    members.await_all(10.0)
    members.join("a", 1)
    assert members.dead(15.1) == {"b"}


def test_without_a_time_nobody_is_dead():
    members = joined(silence_s=None)
    members.lose("a", 0.0)
    assert members.dead(1e9) == frozenset()
    assert members.lost_for("a", 7.0) == 7.0


def test_an_earlier_process_cannot_come_after_a_later_one():
    members = joined()
    assert not members.is_new("a", 1)
    assert members.is_new("a", 2)
    members.join("a", 2)
    with pytest.raises(ProtocolError, match="a is of an earlier process"):
        members.join("a", 1)
    members.join("a", 2)


def test_who_enters_is_outside_before_its_first_round_and_its_successor_afresh():
    members = joined()
    members.enter("a", "tree", 7)
    assert [members.outside("tree", number) for number in (6, 7)] == [{"a"}, frozenset()]
    assert members.outside("site", 0) == frozenset()
    members.enter("a", "tree", 6)
    assert members.outside("tree", 6) == {"a"}
    members.join("a", 2)
    assert members.outside("tree", 6) == frozenset()


@given(
    st.lists(
        st.tuples(st.sampled_from(NAMES), st.sampled_from(["join", "lose"]), st.floats(0, 3)), max_size=40
    )
)
def test_dead_is_exactly_who_was_last_lost_longer_than_the_silence_ago(events):
    members, now, lost = Members(NAMES, 5.0), 0.0, {}
    for name, event, seconds in events:
        now += seconds
        if event == "join":
            members.join(name, 1)
            lost.pop(name, None)
        else:
            members.lose(name, now)
            lost[name] = now
        assert members.dead(now) == {who for who, since in lost.items() if now - since > 5.0}
