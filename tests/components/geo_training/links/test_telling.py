"""What a process says of its links: whom it waits for and turns away, and seldom enough to be read."""

import queue
from functools import partial

import numpy as np
import pytest
from geokfp.components.geo_training.errors import LinkClosedError, RefusedError
from geokfp.components.geo_training.links import client as clients
from geokfp.components.geo_training.links import link as links
from geokfp.components.geo_training.links.client import Terms
from geokfp.components.geo_training.links.telling import EVERY_S, FIRST_S, Patience, Refusals
from geokfp.components.geo_training.wire.units import TREE, Unit
from hypothesis import given
from hypothesis import strategies as st
from support.clock import FakeClock
from support.geo_tree import at_once, topology, tree
from support.memory_transport import MemoryTransport

TIMES = st.lists(st.floats(0, 1000), max_size=60).map(sorted)


@given(TIMES)
def test_what_takes_long_is_said_after_five_seconds_and_then_ever_more_seldom(times):
    said = []
    patience = Patience(100.0, said.append)
    for number, waited in enumerate(times):
        patience.check(100.0 + waited, lambda: "the root")
        assert bool(said) == any(earlier >= FIRST_S for earlier in times[: number + 1])
    assert len(said) <= 8  # 5, 10, 20, ... 640
    assert all(line.startswith("waits for the root, for ") for line in said)


def test_a_wait_knows_when_it_has_something_to_say():
    patience = Patience(100.0, lambda line: None)
    assert patience.left(102.0) == FIRST_S - 2
    patience.check(100.0 + FIRST_S, lambda: "the root")
    assert patience.left(100.0 + FIRST_S) == FIRST_S
    assert patience.left(1000.0) == 0


@given(TIMES)
def test_however_many_are_turned_away_the_log_has_a_line_in_ten_seconds_and_counts_them_all(times):
    said = []
    refusals = Refusals("root", lambda line: said.append(line))
    for at in times:
        refusals.note("1.2.3.4:5", "no", at)
    assert len(said) <= 1 + 1000 / EVERY_S
    if times:
        assert said[0] == "root turns away 1.2.3.4:5: no"
        refusals.note("1.2.3.4:5", "no", 2000.0)
        kept = sum(int(line.partition("(")[2].partition(" ")[0] or 0) for line in said)
        assert len(said) + kept == len(times) + 1


def test_a_worker_says_which_round_of_whom_it_waits_for(monkeypatch):
    shape, transport = topology(1, 2), MemoryTransport()
    lines: queue.Queue[str] = queue.Queue()
    patience = partial(Patience, say=lines.put)
    monkeypatch.setattr("geokfp.components.geo_training.links.telling.FIRST_S", 0.05)
    monkeypatch.setattr(clients, "Patience", patience)

    def work(name):
        client = whole.client(name)
        if name.endswith("1"):
            assert lines.get(timeout=20).startswith(
                "waits for site-0 in round 0 of gradient[0:3] (tree), for "
            )
        rounds = client.next_round(TREE, Unit("gradient", 0, 3))
        client.wait(client.push(rounds, np.ones(3, np.float32), Terms(reduction="mean", weight=1)))
        client.close()

    with tree(shape, transport) as whole:
        at_once(work, shape.workers)
    assert not whole.errors


def test_a_worker_says_whom_it_does_not_reach(monkeypatch):
    lines: list[str] = []
    monkeypatch.setattr(links, "Patience", partial(Patience, say=lines.append))
    clock = FakeClock()

    def nobody():
        clock.advance(FIRST_S)
        raise LinkClosedError("nobody listens at hub:1")

    settings = clients.ClientSettings(name="a", peer="root", run="run", reconnect_s=3 * FIRST_S)
    with pytest.raises(LinkClosedError, match=f"root: not reached within {3 * FIRST_S:.0f} s"):
        clients.Client(settings, nobody, None, clock)
    assert lines[0].startswith("waits for root (nobody listens at hub:1), for ")


def test_a_node_says_whom_it_turns_away_and_why(capsys):
    shape, transport = topology(1, 1), MemoryTransport()
    with tree(shape, transport) as whole:
        with pytest.raises(RefusedError, match="another run"):
            whole.client("site-0/trainer-0", run="yesterday")
        whole.client("site-0/trainer-0").close()
    assert "site-0 turns away memory: site-0/trainer-0 is of another run" in capsys.readouterr().out
