"""What a process counts: rounds, staleness, bytes both ways, what is outstanding; and the file of it."""

import dataclasses
import json
import threading

import numpy as np
import pytest
from geokfp.components._files import ArtifactError
from geokfp.components.geo_training.metrics import SEND, Recorder, Span
from geokfp.components.geo_training.metrics.record import Record, record_of
from geokfp.components.geo_training.metrics.relay_trees import MOST_TREES, TreeRecord
from geokfp.components.geo_training.metrics.table import table
from geokfp.components.geo_training.transport.base import Traffic
from geokfp.components.geo_training.wire.messages import NOTHING, Payload
from geokfp.components.geo_training.wire.relay_messages import Trees
from geokfp.components.geo_training.wire.units import RoundId, Unit
from hypothesis import given
from hypothesis import strategies as st
from support.clock import FakeClock

UNIT = Unit("gradient w", 0, 100)
HALF = Payload("fp16", "<f4", (np.zeros(100, np.float16),))


def recorder() -> tuple[Recorder, FakeClock]:
    clock = FakeClock()
    return Recorder(clock, lambda: 1e9), clock


def round_of(number: int, unit: Unit = UNIT) -> RoundId:
    return RoundId("tree", unit, number)


def test_rounds_bytes_and_staleness_of_each_link():
    made, clock = recorder()
    for number in range(3):
        made.pushed("site-0", round_of(number), HALF)
    made.pushed("site-1", round_of(0), HALF)
    clock.now += 2.0
    made.answered("site-0", round_of(0), HALF)
    counts = made.links()
    assert (counts["site-0"].rounds, counts["site-0"].newest, counts["site-1"].newest) == (1, 3, 1)
    assert made.staleness() == {"site-0": 0, "site-1": 2}
    assert (counts["site-0"].up_dense_bytes, counts["site-0"].up_wire_bytes) == (1200, 600)
    assert (counts["site-0"].down_dense_bytes, counts["site-0"].down_wire_bytes) == (400, 200)


def test_blocks_count_with_what_ends_them_and_an_answer_that_is_given_again_once():
    made, _ = recorder()
    made.pushed("site-0", round_of(0), HALF, 1000)
    for _ in range(2):
        made.answered("site-0", round_of(0), HALF, 3000)
    counts = made.links()["site-0"]
    assert (counts.up_dense_bytes, counts.up_wire_bytes) == (400, 1200)
    assert (counts.down_dense_bytes, counts.down_wire_bytes) == (400, 3200)


def test_what_is_no_gradient_or_change_is_not_counted():
    made, _ = recorder()
    made.pushed("site-0", round_of(0, Unit("weights w", 0, 100)), HALF)
    assert made.links() == {}


def test_who_brings_nothing_takes_part_without_bytes():
    made, _ = recorder()
    made.pushed("site-0", round_of(0), NOTHING)
    made.answered("site-0", round_of(0), NOTHING)
    counts = made.links()["site-0"]
    assert (counts.rounds, counts.up_dense_bytes, counts.down_wire_bytes) == (1, 0, 0)


events = st.lists(
    st.tuples(st.sampled_from(["pushed", "answered"]), st.integers(0, 4), st.floats(0, 3)), max_size=40
)


@given(events)
def test_outstanding_is_the_time_with_at_least_one_open_round(given_events):
    """The oracle: a set of open rounds, and the time between two events where it is not empty."""
    made, clock = recorder()
    expected, outstanding = 0.0, set()
    for what, number, passed in given_events:
        getattr(made, what)("site-0", round_of(number), HALF)
        outstanding = outstanding | {number} if what == "pushed" else outstanding - {number}
        clock.now += passed
        expected += passed if outstanding else 0.0
    links = made.links()
    assert (links["site-0"].outstanding_s if links else 0.0) == pytest.approx(expected)


def test_a_repeated_contribution_is_one():
    made, _ = recorder()
    for _ in range(3):
        made.pushed("site-0", round_of(0), HALF)
    assert made.links()["site-0"].up_wire_bytes == 200


def test_a_links_rate_is_that_of_its_longer_frames():
    made, _ = recorder()
    made.spent(Span("receive", 0.0, 2.0, "site-0", 8000))
    made.spent(Span("receive", 2.0, 3.0, "site-0", 100))
    record = record_of("root", made, {"site-0": Traffic(7, 8100)}, ["site-0"])
    (link,) = record.links
    assert (link.rate, link.arrives, link.up_bytes, link.down_bytes) == (4000.0, "up", 8100, 7)
    (upper,) = record_of("site-0", made, {"root": Traffic(7, 8100)}, []).links
    assert (upper.name, upper.arrives, upper.up_bytes, upper.down_bytes) == ("site-0", "down", 7, 8100)


def test_any_thread_may_tell():
    made, _ = recorder()

    def tell(link: str) -> None:
        for number in range(200):
            made.pushed(link, round_of(number), HALF)
            made.spent(Span(SEND, 0.0, 0.001))
            made.answered(link, round_of(number), HALF)
            made.stepped(float(number))

    threads = [threading.Thread(target=tell, args=(f"site-{index}",)) for index in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert made.steps == 800
    assert made.seconds(SEND) == pytest.approx(0.8)
    assert {counts.rounds for counts in made.links().values()} == {200}


def test_the_table_has_a_line_a_site():
    made, clock = recorder()
    made.pushed("b", round_of(0), HALF)
    made.pushed("a", round_of(1), HALF)
    clock.now += 1.0
    made.answered("a", round_of(1), HALF)
    clock.now += 1.0
    lines = table(record_of("root", made, {"a": Traffic(5, 2_000_000), "b": Traffic()}, ["a", "b"]), "root")
    assert [line.partition(" to ")[0] for line in lines] == ["a", "b"]
    assert "2 rounds  0 behind  2.00 MB up  0.00 MB down  ratio 2.0  waited 50 %" in lines[0]
    assert "0 rounds  1 behind" in lines[1]
    assert "waited 100 %" in lines[1]


def test_a_record_is_read_as_it_was_written(tmp_path):
    made, clock = recorder()
    made.pushed("site-0", round_of(0), HALF)
    clock.now += 0.5
    made.stepped(0.25)
    made.stepped(0.5)
    record = record_of("root", made, {"site-0": Traffic(1, 2)}, ["site-0"])
    record.write(tmp_path / "root.json")
    assert Record.read(tmp_path / "root.json") == record


def test_trees_are_counted_and_the_last_one_is_the_last(tmp_path):
    made, _ = recorder()
    star, chain = {"a": "root", "b": "root"}, {"a": "root", "b": "a"}
    for up in (chain, star, star, chain):
        made.relayed(Trees(up, star))
    record = record_of("root", made, {}, [])
    assert record.trees_up == (TreeRecord(parents=star, rounds=2), TreeRecord(parents=chain, rounds=2))
    assert record.trees_down == (TreeRecord(parents=star, rounds=4),)
    record.write(tmp_path / "root.json")
    assert Record.read(tmp_path / "root.json") == record


def test_of_many_trees_the_last_ones_are_remembered():
    made, _ = recorder()
    for number in range(MOST_TREES + 5):
        made.relayed(Trees({"a": f"site-{number}"}, {"a": "root"}))
    up, down = made.trees()
    assert [tree.parents["a"] for tree in up] == [f"site-{number}" for number in range(5, MOST_TREES + 5)]
    assert [tree.rounds for tree in down] == [MOST_TREES + 5]


@pytest.mark.parametrize(
    "alter",
    [
        lambda document: document.update(version=2),
        lambda document: document.pop("links"),
        lambda document: document.update(more=1),
        lambda document: document.update(trees_up=[{"parents": {}}]),
        lambda document: document["series"].update(wait=[0.0] * 257),
    ],
)
def test_what_is_no_record_is_refused(tmp_path, alter):
    made, _ = recorder()
    path = tmp_path / "root.json"
    record_of("root", made, {}, []).write(path)
    document = json.loads(path.read_text())
    alter(document)
    path.write_text(json.dumps(document))
    with pytest.raises(ArtifactError, match="not a record of a process"):
        Record.read(path)


def test_a_record_is_of_bounded_size(tmp_path):
    made, _ = recorder()
    for step in range(20_000):
        made.stepped(step * 0.7)
        made.spent(Span(SEND, step * 0.7, step * 0.7 + 0.3))
    record = record_of("worker", made, {}, [])
    record.write(tmp_path / "worker.json")
    assert (tmp_path / "worker.json").stat().st_size < 20_000
    assert dataclasses.asdict(record)["steps"] == 20_000
