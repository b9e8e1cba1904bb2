"""Laws of the rounds, for any order, repeat and loss of contributions."""

import pytest
from geokfp.components.geo_training.errors import ProtocolError, UsageError
from geokfp.components.geo_training.nodes.rounds import (
    REMEMBERED,
    Contribution,
    Finished,
    Held,
    Overdue,
    Repeated,
    Rounds,
)
from geokfp.components.geo_training.nodes.rules import All, Quorum
from geokfp.components.geo_training.wire.units import RoundId, Unit
from hypothesis import given
from hypothesis import strategies as st
from support.clock import FakeClock

WORKERS = ("a", "b", "c")
EXPECTED = frozenset(WORKERS)
UNIT = Unit("gradient", 0, 4)


def round_id(number: int, unit: Unit = UNIT) -> RoundId:
    return RoundId("tree", unit, number)


def contribution(
    sender: str, number: int = 0, covers: tuple[str, ...] = (), weight: float = 1.0, wait_s: float = 30.0
) -> Contribution:
    return Contribution(sender, frozenset(covers or (sender,)), weight, wait_s, (sender, number))


deliveries = st.lists(st.tuples(st.sampled_from(WORKERS), st.integers(0, 4), st.integers(0, 1)), max_size=60)
rules = st.sampled_from([All(), Quorum(1), Quorum(2), Quorum(2, grace_s=3.0)])


@given(deliveries, rules, st.lists(st.booleans(), min_size=60, max_size=60))
def test_no_round_finishes_twice_and_no_sample_is_lost_or_counted_twice(sent, rule, ticks):
    """Each delivery is (worker, number, key); repeats are repeats, what is absent was lost."""
    units = (UNIT, Unit("other", 0, 1))
    rounds, clock = Rounds(lambda _round: rule), FakeClock()
    finished: list[Finished] = []

    def take(events):
        for event in events:
            if isinstance(event, Finished):
                finished.append(event)
                rounds.settle(event.round, "result")

    for (worker, number, key), ticked in zip(sent, ticks, strict=False):
        one = Contribution(worker, frozenset({worker}), 1.0, 1e9, (worker, number, key))
        take([rounds.offer(round_id(number, units[key]), one, EXPECTED, clock())])
        if ticked:
            clock.advance(2.0)
            take(rounds.tick(clock()))

    assert len({event.round for event in finished}) == len(finished)
    counted = [c.value for event in finished for c in event.contributions]
    assert len(set(counted)) == len(counted)
    assert set(counted) <= set(sent)
    # One more full round of each key brings whatever was held back for the next one.
    for key, unit in enumerate(units):
        for number in (*range(5), 5, 6):
            for worker in WORKERS:
                one = Contribution(worker, frozenset({worker}), 1.0, 1e9, (worker, number, key))
                take([rounds.offer(round_id(number, unit), one, EXPECTED, clock())])
    clock.advance(10.0)
    take(rounds.tick(clock()))
    counted = [c.value for event in finished for c in event.contributions]
    assert len(set(counted)) == len(counted)
    assert {value for value in counted if value[1] < 5} >= set(sent)


@given(st.permutations([*WORKERS, *WORKERS]))
def test_all_finishes_with_the_last_worker_sorted_by_sender(order):
    rounds = Rounds(lambda _round: All())
    events = [rounds.offer(round_id(0), contribution(worker), EXPECTED, 0.0) for worker in order]
    done = [event for event in events if isinstance(event, Finished)]
    assert len(done) == 1
    assert [c.sender for c in done[0].contributions] == list(WORKERS)
    assert done[0].weight == 3.0
    assert done[0].covers == WORKERS


def test_a_repeat_after_the_end_gets_the_result():
    rounds = Rounds(lambda _round: All())
    assert rounds.offer(round_id(0), contribution("a"), frozenset("a"), 0.0)
    assert rounds.offer(round_id(0), contribution("a"), frozenset("a"), 0.0) == Repeated(None)
    assert rounds.settle(round_id(0), "result") == ("a",)
    assert rounds.offer(round_id(0), contribution("a"), frozenset("a"), 0.0) == Repeated("result")
    with pytest.raises(UsageError, match="not waiting"):
        rounds.settle(round_id(0), "again")


def test_merged_contributions_count_for_all_whom_they_cover():
    rounds = Rounds(lambda _round: All())
    assert rounds.offer(round_id(0), contribution("site", covers=("a", "b")), EXPECTED, 0.0) == Held()
    assert rounds.offer(round_id(0), contribution("b"), EXPECTED, 0.0) == Repeated(None)
    with pytest.raises(ProtocolError, match="partly counted"):
        rounds.offer(round_id(0), contribution("relay", covers=("b", "c")), EXPECTED, 0.0)
    assert isinstance(rounds.offer(round_id(0), contribution("c"), EXPECTED, 0.0), Finished)


def test_a_part_that_came_another_way_gives_place_to_the_whole_and_both_senders_are_answered():
    rounds = Rounds(lambda _round: All())
    assert rounds.offer(round_id(0), contribution("b", weight=2.0), EXPECTED, 0.0) == Held()
    whole = contribution("a", covers=("a", "b"), weight=3.0)
    assert rounds.offer(round_id(0), whole, EXPECTED, 0.0) == Held()
    done = rounds.offer(round_id(0), contribution("c"), EXPECTED, 0.0)
    assert isinstance(done, Finished)
    assert done.weight == 4.0
    assert done.covers == ("a", "b", "c")
    assert rounds.settle(round_id(0), "result") == ("a", "b", "c")


def test_who_is_counted_by_another_gets_the_result_when_it_asks():
    rounds = Rounds(lambda _round: All())
    rounds.offer(round_id(0), contribution("a", covers=("a", "b")), EXPECTED, 0.0)
    assert rounds.ask(round_id(0), "b", frozenset("b")) == Held()
    assert rounds.ask(round_id(0), "c", frozenset("c")) is None
    rounds.offer(round_id(0), contribution("c"), EXPECTED, 0.0)
    assert rounds.settle(round_id(0), "result") == ("a", "b", "c")
    assert rounds.ask(round_id(0), "b", frozenset("b")) == Repeated("result")


def test_workers_that_are_not_expected_are_the_peers_error():
    rounds = Rounds(lambda _round: All())
    for covers in (("stranger",), ("a", "stranger")):
        with pytest.raises(ProtocolError, match="not expected"):
            rounds.offer(round_id(0), contribution("x", covers=covers), EXPECTED, 0.0)
    with pytest.raises(ProtocolError, match="not expected"):
        rounds.offer(round_id(0), Contribution("x", frozenset(), 1.0, 1e9, None), EXPECTED, 0.0)


def test_what_is_too_old_to_judge_is_an_error_and_not_dropped():
    rounds = Rounds(lambda _round: All())
    for number in range(REMEMBERED + 1):
        rounds.offer(round_id(number), contribution("a", number), frozenset("a"), 0.0)
    with pytest.raises(ProtocolError, match="behind"):
        rounds.offer(round_id(0), contribution("a"), frozenset("a"), 0.0)


def test_ask_tells_missing_from_held_and_done():
    rounds = Rounds(lambda _round: All())
    assert rounds.ask(round_id(0), "a") is None
    rounds.offer(round_id(0), contribution("a"), EXPECTED, 0.0)
    assert rounds.ask(round_id(0), "a") == Held()
    assert rounds.ask(round_id(0), "b") is None
    for worker in "bc":
        rounds.offer(round_id(0), contribution(worker), EXPECTED, 0.0)
    assert rounds.ask(round_id(0), "b") == Held()
    rounds.settle(round_id(0), "result")
    assert rounds.ask(round_id(0), "b") == Repeated("result")


def test_a_quorum_waits_for_its_grace_and_carries_the_late_one_over():
    clock = FakeClock(100.0)
    rounds = Rounds(lambda _round: Quorum(2, grace_s=5.0))
    for worker in "ab":
        assert rounds.offer(round_id(0), contribution(worker, 0), EXPECTED, clock()) == Held()
    clock.advance(5.0)
    (done,) = rounds.tick(clock())
    assert isinstance(done, Finished)
    assert done.covers == ("a", "b")
    rounds.settle(done.round, "first")
    assert rounds.offer(round_id(0), contribution("c", 0), EXPECTED, clock()) == Repeated("first")
    events = [rounds.offer(round_id(1), contribution(worker, 1), EXPECTED, clock()) for worker in WORKERS]
    assert isinstance(events[-1], Finished)
    assert [c.value for c in events[-1].contributions] == [("a", 1), ("b", 1), ("c", 1), ("c", 0)]


def test_who_is_far_behind_still_gets_every_result_under_a_quorum():
    rounds = Rounds(lambda _round: Quorum(1))
    for number in range(10):
        rounds.offer(round_id(number), contribution("a", number), frozenset("ab"), 0.0)
        rounds.settle(round_id(number), f"result {number}")
    for number in range(10):
        late = rounds.offer(round_id(number), contribution("b", number), frozenset("ab"), 1.0)
        assert late == Repeated(f"result {number}")


def test_a_round_that_waits_too_long_says_for_whom():
    clock = FakeClock()
    rounds = Rounds(lambda _round: All())
    rounds.offer(round_id(7), contribution("b", 7), EXPECTED, clock())
    clock.advance(30.0)
    assert list(rounds.tick(clock())) == []
    clock.advance(1.0)
    assert list(rounds.tick(clock())) == [Overdue(round_id(7), ("a", "c"), 31.0)]


def test_who_is_known_to_stay_away_is_not_waited_for_and_counts_when_it_comes_after_all():
    away = {"c"}
    rounds = Rounds(lambda _round: All(), absent=lambda _round: frozenset(away))
    assert rounds.offer(round_id(0), contribution("a"), EXPECTED, 0.0) == Held()
    done = rounds.offer(round_id(0), contribution("b"), EXPECTED, 0.0)
    assert isinstance(done, Finished)
    assert done.covers == ("a", "b")
    rounds.settle(done.round, "first")
    away.clear()
    late = rounds.offer(round_id(0), contribution("c"), EXPECTED, 1.0)
    assert isinstance(late, Repeated)
    assert late.is_late
    events = [rounds.offer(round_id(1), contribution(worker, 1), EXPECTED, 1.0) for worker in WORKERS]
    assert isinstance(events[-1], Finished)
    assert [c.value for c in events[-1].contributions] == [("a", 1), ("b", 1), ("c", 1), ("c", 0)]


def test_a_death_finishes_the_round_that_waits_for_it_at_the_next_tick():
    away = set()
    rounds = Rounds(lambda _round: Quorum(2, grace_s=5.0), absent=lambda _round: frozenset(away))
    for worker in "ab":
        rounds.offer(round_id(0), contribution(worker), EXPECTED, 0.0)
    assert list(rounds.tick(1.0)) == []
    away.add("c")
    (done,) = rounds.tick(1.0)
    assert isinstance(done, Finished)


def test_a_quorum_waits_for_its_number_whoever_stays_away():
    rounds = Rounds(lambda _round: Quorum(2), absent=lambda _round: frozenset("bc"))
    assert rounds.offer(round_id(0), contribution("a"), EXPECTED, 0.0) == Held()
    assert list(rounds.tick(10.0)) == []
    assert isinstance(rounds.offer(round_id(0), contribution("b"), EXPECTED, 11.0), Finished)


def test_who_comes_through_one_sender_only_is_not_waited_for_once_that_has_come():
    rounds = Rounds(lambda _round: All())
    site = Contribution("site", frozenset("a"), 1.0, 1e9, "of a", speaks_for=frozenset("ab"))
    assert rounds.offer(round_id(0), site, EXPECTED, 0.0) == Held()
    done = rounds.offer(round_id(0), contribution("c"), EXPECTED, 0.0)
    assert isinstance(done, Finished)
    assert done.covers == ("a", "c")


@pytest.mark.parametrize("is_done", [False, True])
def test_a_sender_that_repeats_a_round_with_more_workers_counts_once(is_done):
    rounds = Rounds(lambda _round: All(), absent=lambda _round: frozenset("b"))
    rounds.offer(round_id(0), contribution("site", covers=("a",)), EXPECTED, 0.0)
    if is_done:
        assert isinstance(rounds.offer(round_id(0), contribution("c"), EXPECTED, 0.0), Finished)
        rounds.settle(round_id(0), "result")
    again = rounds.offer(round_id(0), contribution("site", 1, covers=("a", "b")), EXPECTED, 0.0)
    assert again == Repeated("result" if is_done else None)
    assert not again.is_late
    assert rounds.carried() == {}


def test_the_next_number_of_a_sender_is_after_all_that_it_may_have_a_part_in():
    rounds = Rounds(lambda _round: All())
    assert rounds.next_number("tree", ["gradient"], "c") == 0
    for number in range(2):
        for worker in WORKERS:
            rounds.offer(round_id(number), contribution(worker, number), EXPECTED, 0.0)
    rounds.offer(round_id(2), contribution("a", 2), EXPECTED, 0.0)
    rounds.offer(round_id(9, Unit("numbers", 0, 1)), contribution("c", 9), EXPECTED, 0.0)
    assert rounds.next_number("tree", ["gradient"], "a") == 3
    assert rounds.next_number("tree", ["gradient"], "c") == 2
    assert rounds.next_number("site", ["gradient"], "a") == 0


@given(deliveries, st.lists(st.sampled_from("abc-"), min_size=60, max_size=60))
def test_deaths_and_returns_lose_no_sample_and_count_none_twice(sent, deaths):
    """At each delivery one worker is known dead, or none is."""
    away: set[str] = set()
    rounds, finished = Rounds(lambda _round: Quorum(1), absent=lambda _round: frozenset(away)), []

    def take(events):
        for event in events:
            if isinstance(event, Finished):
                finished.append(event)
                rounds.settle(event.round, "result")

    def deliver(worker, number):
        take([rounds.offer(round_id(number), contribution(worker, number), EXPECTED, 0.0)])
        take(rounds.tick(0.0))

    for (worker, number, _), dead in zip(sent, deaths, strict=False):
        away = {dead} - {"-"}
        deliver(worker, number)
    away = set()
    for number in range(6):
        for worker in WORKERS:
            deliver(worker, number)
    counted = [c.value for event in finished for c in event.contributions]
    assert len(set(counted)) == len(counted)
    assert {value for value in counted if value[1] < 5} >= {(worker, number) for worker, number, _ in sent}


def test_who_is_in_a_later_round_is_ahead_of_an_earlier_one():
    rounds = Rounds(lambda _round: All())
    rounds.offer(round_id(10), contribution("a", 10), EXPECTED, 0.0)
    rounds.offer(round_id(11), contribution("b", 11), EXPECTED, 0.0)
    assert rounds.ahead(round_id(10)) == {"b"}
    assert rounds.ahead(round_id(11)) == frozenset()


def test_a_result_is_kept_until_all_that_are_expected_are_in_it_and_in_a_later_round():
    rounds = Rounds(lambda _round: Quorum(2))
    kept = {}
    for number, workers in enumerate(["abc", "ab", "abc", "abc"]):
        for worker in workers:
            rounds.offer(round_id(number), contribution(worker, number), EXPECTED, 0.0)
        rounds.settle(round_id(number), number)
        kept[number] = [done.result for _, done in rounds.done() if done.result is not None]
    assert kept == {0: [0], 1: [0, 1], 2: [1, 2], 3: [1, 3]}
    late = rounds.offer(round_id(1), contribution("c", 1), EXPECTED, 0.0)
    assert late == Repeated(1)
    rounds.offer(round_id(4), contribution("a", 4), EXPECTED, 0.0)
    rounds.offer(round_id(4), contribution("b", 4), EXPECTED, 0.0)
    assert [done.result for _, done in rounds.done() if done.result is not None] == [3]
