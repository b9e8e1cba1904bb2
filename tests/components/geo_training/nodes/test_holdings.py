"""What a node holds in memory and what it puts by: nothing changes by it, and it is bounded."""

import numpy as np
import pytest
from geokfp.components.geo_training.checkpoints.carried import Value
from geokfp.components.geo_training.links.client import Terms
from geokfp.components.geo_training.nodes import holdings, shelf
from geokfp.components.geo_training.nodes.holdings import MOST_RESULTS, MOST_WAITING
from geokfp.components.geo_training.nodes.results import Results
from geokfp.components.geo_training.nodes.rounds import Contribution, Finished, Rounds
from geokfp.components.geo_training.nodes.rules import All, Quorum
from geokfp.components.geo_training.nodes.shelf import Shelf, in_memory
from geokfp.components.geo_training.topology import ROOT
from geokfp.components.geo_training.wire.messages import Answer, Payload
from geokfp.components.geo_training.wire.units import TREE, RoundId, Unit
from support.geo_tree import topology, tree
from support.memory_transport import MemoryTransport

COUNT = 1000
UNITS = [Unit("gradient w", place * COUNT, COUNT) for place in range(4)]
MODEL = 4 * COUNT * len(UNITS)


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(holdings, "LEAST_BYTES", 0)


def test_what_is_put_by_comes_back_and_gives_its_place_to_others():
    kept, values = Shelf(), np.arange(3000, dtype=np.float32)
    first, second = kept.put(values), kept.put(-values)
    np.testing.assert_array_equal(first.read(), values)
    np.testing.assert_array_equal(second.read(), -values)
    far = kept.num_bytes
    del first
    third = kept.put(2 * values)
    assert kept.num_bytes == far
    np.testing.assert_array_equal(third.read(), 2 * values)
    np.testing.assert_array_equal(second.read(), -values)
    assert kept.put(np.zeros(0, np.float32)).read().size == 0


def test_what_could_not_be_written_takes_no_place(monkeypatch):
    kept = Shelf()
    first = kept.put(np.ones(3000))
    far = kept.num_bytes
    with monkeypatch.context() as full:
        full.setattr(
            shelf, "_write", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device"))
        )
        assert [kept.put(np.ones(3000)) for _ in range(3)] == [None] * 3
    grown = kept.num_bytes
    later = kept.put(np.full(3000, 2.0))
    assert kept.num_bytes == grown == 2 * far
    np.testing.assert_array_equal(later.read(), np.full(3000, 2.0))
    np.testing.assert_array_equal(first.read(), np.ones(3000))


def test_an_answer_comes_back_as_it_was():
    buffers = (np.arange(7, dtype=np.uint8), np.arange(3, dtype=np.float16))
    answer = Answer(RoundId(TREE, UNITS[0], 3), 5.0, Payload("any", "<f4", buffers), 2)
    found = in_memory(Shelf().put_answer(answer))
    assert (found.round, found.weight, found.priority) == (answer.round, 5.0, 2)
    assert [b.tolist() for b in found.payload.buffers] == [b.tolist() for b in buffers]
    assert in_memory(answer) is answer


def test_where_nothing_can_be_written_values_stay_in_memory_and_that_is_said_once(tmp_path, monkeypatch):
    said: list[str] = []
    monkeypatch.setattr(shelf.tempfile, "tempdir", str(tmp_path / "none"))
    monkeypatch.setattr(shelf, "progress", said.append)
    kept = Shelf()
    assert kept.put(np.ones(9)) is None
    assert kept.put(np.ones(9)) is None
    assert len(said) == 1
    assert str(tmp_path / "none") in said[0]


def test_results_beyond_are_the_oldest():
    results, rounds = Results(), [RoundId(TREE, UNITS[0], number) for number in range(4)]
    for round_id in rounds:
        results.add(round_id, 10)
    assert list(results.beyond(40)) == []
    assert list(results.beyond(25)) == rounds[:2]
    results.drop(rounds[0])
    results.drop(rounds[0])
    assert results.num_bytes == 30
    assert list(results.beyond(25)) == [rounds[1]]


def test_held_bytes_are_those_of_contributions_that_wait():
    rounds = Rounds(lambda round_id: Quorum(1) if round_id.unit == UNITS[0] else All())
    expected = frozenset("abc")

    def offer(sender: str, unit: Unit, number: int, covers: str = "") -> object:
        value = Value("mean", None)
        one = Contribution(sender, frozenset(covers or sender), 1.0, 9.0, value, num_bytes=10)
        return rounds.offer(RoundId(TREE, unit, number), one, expected, 0.0)

    offer("a", UNITS[1], 0)
    offer("a", UNITS[1], 0)
    assert rounds.held_bytes == 10
    offer("b", UNITS[1], 0, covers="ab")  # with a's in it
    assert rounds.held_bytes == 10
    assert isinstance(offer("c", UNITS[1], 0), Finished)
    assert rounds.held_bytes == 0
    assert isinstance(offer("a", UNITS[0], 0), Finished)
    offer("b", UNITS[0], 0)
    offer("b", UNITS[0], 0)
    assert rounds.held_bytes == 10  # it counts in the next round
    assert isinstance(offer("a", UNITS[0], 1), Finished)
    assert rounds.held_bytes == 0


def answers_of(quick: int, monkeypatch: pytest.MonkeyPatch) -> tuple[list[np.ndarray], list[tuple[int, int]]]:
    """Returns what a quick and a late site are answered by a root that waits for one, and what that held."""
    shape, held = topology(2, 1), []

    def look(self, unit, values):
        own = root.rounds
        held.append((own.held_bytes, own._results.num_bytes))
        return encode(self, unit, values)

    with tree(shape, MemoryTransport(), synchronization="fsa + quorum(workers=1, grace_s=0)") as whole:
        root = whole.aggregators[ROOT]._presence
        encode = type(whole.aggregators[ROOT]._down).encode
        with monkeypatch.context() as patched:
            patched.setattr(type(whole.aggregators[ROOT]._down), "encode", look)
            sites = {site.name: whole.client(site.name, ROOT) for site in shape.sites}

            def step(site: str, number: int) -> list[np.ndarray]:
                terms = Terms(reduction="mean", weight=1.0, covers=(f"{site}/trainer-0",))
                values = [np.full(COUNT, 0.1 * number + len(site), np.float32) for _ in UNITS]
                rounds = [RoundId(TREE, unit, number) for unit in UNITS]
                client = sites[site]
                pending = [client.push(r, v, terms) for r, v in zip(rounds, values, strict=True)]
                return [client.wait(one).values for one in pending]

            found = [value for number in range(quick) for value in step("site-0", number)]
            found += [value for number in range(quick) for value in step("site-1", number)]
            found += step("site-0", quick)
            for client in (*sites.values(), *(whole.client(name) for name in shape.workers)):
                client.close()
    return found, held


def test_a_late_site_is_answered_the_same_and_the_root_holds_few_models(small, monkeypatch):
    quick = 20
    found, held = answers_of(quick, monkeypatch)
    assert max(waiting for waiting, _ in held) <= MOST_WAITING * MODEL
    assert max(results for _, results in held) <= MOST_RESULTS * MODEL
    monkeypatch.setattr(holdings, "LEAST_BYTES", 1 << 30)  # all in memory
    unbounded, held = answers_of(quick, monkeypatch)
    assert max(results for _, results in held) >= quick * MODEL
    for one, other in zip(found, unbounded, strict=True):
        np.testing.assert_array_equal(one, other)
