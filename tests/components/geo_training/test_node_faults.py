"""Workers, aggregators and roots that are killed, come back or lose their link, over a network in memory."""

import math
import threading
import time

import numpy as np
import pytest
from geokfp.components._files import InputError
from geokfp.components.geo_training.errors import DeadlineError, RefusedError, SilenceError
from geokfp.components.geo_training.links.heartbeats import Silence
from geokfp.components.geo_training.transport.base import Address
from geokfp.components.geo_training.transport.outbox import Outbox
from geokfp.components.geo_training.transport.tcp import TcpTransport
from geokfp.components.geo_training.tree_job import TreeJob
from geokfp.components.geo_training.wire.messages import Heartbeat, encode
from support.faulty_tree import SILENCE_S, FaultyTree, counted_once
from support.geo_tree import topology
from support.network import Network

VICTIM, SIBLING, OTHER = "site-1/trainer-1", "site-1/trainer-0", "site-0/trainer-0"
TECHNIQUES = [
    ("fsa(optimizer=adam(rate=0.05))", 1, "none"),
    ("fsa(optimizer=sgd(rate=0.1))", 1, "top_k(ratio=0.3) + by_size(bound=0)"),
    ("mixed(optimizer=sgd(rate=0.1))", 1, "none"),
    ("hfa(k1=2) + outer(momentum=0.5)", 2, "none"),
    ("hfa(k1=1, k2=3)", 3, "fp16"),
    ("nbsync(steps=2)", 2, "none"),
]


def at(step, name, do):
    """Returns what calls `do` with the tree once, before a step of a worker."""
    done = []

    def before(tree, who, when):
        if (who, when) == (name, step) and not done:
            done.append(True)
            do(tree)

    return before


def ended_alike(tree, names=None):
    names = names or tree.shape.workers
    assert not tree.errors
    assert set(tree.last) == set(names)
    first, *others = (tree.last[name] for name in names)
    for other in others:
        np.testing.assert_array_equal(other, first)
    assert 0 < np.abs(first).max() < 2
    counted_once(tree.weights_of_rounds)


@pytest.mark.parametrize(("text", "steps_a_round", "compressed"), TECHNIQUES)
def test_a_killed_worker_comes_back_with_the_weights_of_the_others(text, steps_a_round, compressed):
    kill = at(7, VICTIM, lambda tree: tree.restart(VICTIM))
    tree = FaultyTree(text, steps_a_round=steps_a_round, compressed=compressed, before=kill).run()
    ended_alike(tree)
    before, again = tree.first_rounds[VICTIM]
    assert before is None
    assert again is not None
    assert again >= 7 // steps_a_round - 1  # a push that was on the way with its sender is lost
    begun = again * steps_a_round
    if begun < 12 and "nbsync" not in text:  # where others have taken steps of their own meanwhile
        np.testing.assert_array_equal(tree.seen[VICTIM][begun], tree.seen[SIBLING][begun])


@pytest.mark.parametrize(("text", "steps_a_round", "compressed"), TECHNIQUES)
def test_who_stays_dead_is_left_out_where_a_quorum_is_enough(text, steps_a_round, compressed):
    options = {"steps_a_round": steps_a_round, "compressed": compressed}
    kill = at(5, VICTIM, lambda tree: tree.kill(VICTIM))
    tree = FaultyTree(f"{text} + quorum(workers=2, grace_s=0.2)", before=kill, **options).run()
    ended_alike(tree, [name for name in tree.shape.workers if name != VICTIM])


@pytest.mark.parametrize(
    ("text", "steps_a_round"),
    [("fsa(optimizer=sgd(rate=0.1))", 1), ("mixed", 1), ("hfa(k1=2)", 2), ("nbsync(steps=2)", 2)],
)
def test_a_whole_site_dies_and_comes_back_while_the_other_goes_on(text, steps_a_round):
    site = ["site-1", "site-1/trainer-0", "site-1/trainer-1"]
    kill = at(5, VICTIM, lambda tree: tree.restart(*site))
    quorum = f"{text} + quorum(workers=2, grace_s=0.5)"
    tree = FaultyTree(quorum, steps_a_round=steps_a_round, before=kill).run()
    ended_alike(tree)


@pytest.mark.parametrize("text", ["fsa", "fsa(optimizer=sgd(rate=0.1))", "mixed"])
def test_an_aggregator_starts_again_below_a_root_and_above_workers_that_live_on(text):
    straight = FaultyTree(text).run()
    kill = at(5, VICTIM, lambda tree: tree.restart("site-1"))
    tree = FaultyTree(text, before=kill).run()
    ended_alike(tree)
    if text != "mixed":
        np.testing.assert_array_equal(tree.last[VICTIM], straight.last[VICTIM])


@pytest.mark.parametrize(
    ("text", "steps_a_round", "compressed"),
    [
        ("fsa(optimizer=adam(rate=0.05))", 1, "top_k(ratio=0.3) + by_size(bound=0)"),
        ("hfa(k1=2) + outer(momentum=0.5)", 2, "none"),
        ("nbsync(steps=2)", 2, "fp16(feedback=1.0)"),
    ],
)
@pytest.mark.parametrize("step", [1, 8])
def test_a_root_goes_on_where_it_was_killed_and_all_is_as_if_it_had_not_been(
    tmp_path, text, steps_a_round, compressed, step
):
    options = {"steps_a_round": steps_a_round, "compressed": compressed}
    straight = FaultyTree(text, **options).run()
    kill = at(step, VICTIM, lambda tree: tree.restart("root"))
    tree = FaultyTree(text, kept=tmp_path / "kept", before=kill, **options).run()
    assert tree.first_rounds == {name: [None] for name in tree.shape.workers}
    ended_alike(tree)
    if text.startswith("nbsync"):
        return  # between which two steps a mean comes in, the clock says
    for name, weights in straight.last.items():
        np.testing.assert_array_equal(tree.last[name], weights)


@pytest.mark.parametrize("text", ["hfa(k1=2) + outer(momentum=0.5)", "fsa(optimizer=adam(rate=0.05))"])
def test_a_root_that_keeps_nothing_ends_the_run_when_another_starts_in_its_place(text):
    kill = at(8, VICTIM, lambda tree: tree.restart("root"))
    tree = FaultyTree(text, steps_a_round=2 if "hfa" in text else 1, before=kill).run()
    assert tree.errors.keys() >= {"root", "site-0", "site-1", VICTIM}
    assert "root was started again, and without checkpoint_every it remembers nothing" in str(
        tree.errors["root"]
    )
    assert "remembers nothing" in str(tree.errors[VICTIM])


def test_a_worker_comes_back_after_the_root_did(tmp_path):
    kills = [
        at(4, OTHER, lambda tree: tree.restart("root")),
        at(8, VICTIM, lambda tree: tree.restart(VICTIM)),
    ]

    def before(*place):
        for kill in kills:
            kill(*place)

    ended_alike(FaultyTree("fsa(optimizer=adam(rate=0.05))", kept=tmp_path / "kept", before=before).run())


def test_a_worker_cannot_come_back_where_only_the_others_have_the_optimizers_state():
    tree = FaultyTree("fsa", before=at(5, VICTIM, lambda tree: tree.restart(VICTIM)), reconnect_s=2.0).run()
    assert isinstance(tree.errors[VICTIM], RefusedError)
    assert "comes after the others have begun: only the others have what optimizers" in str(
        tree.errors[VICTIM]
    )


def test_without_a_quorum_who_stays_dead_ends_the_run_with_its_name():
    kill = at(5, VICTIM, lambda tree: tree.kill(VICTIM))
    tree = FaultyTree("fsa", before=kill, reconnect_s=1.5).run()
    assert isinstance(tree.errors["site-1"], DeadlineError)
    assert f"site-1 has not heard {VICTIM} for" in str(tree.errors["site-1"])
    assert "has not heard" in str(tree.errors[OTHER])


@pytest.mark.parametrize("text", ["fsa", "hfa(k1=1) + quorum(workers=4)"])
def test_a_cut_costs_at_most_itself_a_silence_and_a_round(text):
    cut_s, at_ = 2.5 * SILENCE_S, {}

    def cut(tree):
        tree.network.cut("site-1", "root")
        at_["cut"] = time.monotonic()
        mend = threading.Timer(cut_s, tree.network.mend, ("site-1", "root"))
        mend.start()

    def before(tree, name, step):
        cutting(tree, name, step)
        at_.setdefault((name, step), time.monotonic())

    cutting = at(5, OTHER, cut)
    tree = FaultyTree(text, before=before).run()
    ended_alike(tree)
    rounds = [at_[OTHER, step + 1] - at_[OTHER, step] for step in range(11)]
    slowest = rounds.index(max(rounds))
    stood_still = at_[OTHER, slowest + 1] - at_["cut"]
    # A connection is tried again every second at least: 1 beside what is allowed.
    assert cut_s < stood_still < cut_s + SILENCE_S + 1.0 + sorted(rounds)[-2] + SILENCE_S


def test_a_silent_peer_is_dropped_though_its_connection_lives():
    network = Network()
    listener = network.at("root").listen(Address("127.0.0.1", 1))
    connection = network.at("site-0").connect(listener.address, 1.0)
    accepted = listener.accept(1.0)
    for end in (connection, accepted):
        end.silence_s = 0.2
    accepted.send(Heartbeat())
    assert connection.receive() == Heartbeat()
    network.cut("root", "site-0")
    accepted.send(Heartbeat())
    with pytest.raises(SilenceError):
        connection.receive()


def test_a_silent_tcp_peer_is_told_from_one_that_says_that_it_lives():
    listener = TcpTransport().listen(Address("127.0.0.1", 0))
    connection = TcpTransport().connect(listener.address, 5.0)
    accepted = listener.accept(5.0)
    connection.silence_s = 1.0
    outbox = Outbox(accepted, "peer")
    ended = Silence(1.0).watch(accepted, outbox, "peer")
    beats = [connection.receive() for _ in range(8)]  # twice the silence
    assert beats == [Heartbeat()] * 8
    counted = connection.traffic.received_bytes
    assert counted == 8 * sum(len(piece) for piece in encode(Heartbeat()))
    ended.set()
    with pytest.raises(SilenceError, match="was silent for 1 s"):
        connection.receive()
    for one in (outbox, connection, listener):
        one.close(0) if one is outbox else one.close()


@pytest.mark.parametrize(
    ("option", "value"), [("silence_s", 0.0), ("reconnect_s", -1.0), ("silence_s", math.inf)]
)
def test_times_that_cannot_be_are_refused(option, value):
    with pytest.raises(InputError, match=f"^{option} is {value}, allowed: a number above 0"):
        TreeJob(run_id="run", workers={"site-0": 1}, topology=topology(1, 1), **{option: value})
