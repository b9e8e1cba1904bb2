"""A root, and a site that is started again while the other waits: real nodes and links, in memory."""

import threading

import numpy as np
import pytest
from geokfp.components.geo_training.checkpoints.answers import Answers
from geokfp.components.geo_training.compression import compression
from geokfp.components.geo_training.links.client import Client, ClientSettings, Terms
from geokfp.components.geo_training.nodes.aggregator import Aggregator, AggregatorSettings
from geokfp.components.geo_training.nodes.presence import FaultRules
from geokfp.components.geo_training.nodes.route import TreeRouter
from geokfp.components.geo_training.synchronization import synchronization
from geokfp.components.geo_training.topology import ROOT
from geokfp.components.geo_training.wire.units import TREE, Unit
from support.faults import wait_until
from support.geo_tree import topology
from support.memory_transport import MemoryTransport

WEIGHTS, GRADIENT, NUMBER = Unit("weights w", 0, 2), Unit("gradient w", 0, 2), Unit("checkpoint number", 0, 1)
STEPS = 80
"""Steps of an epoch: more than the root remembers rounds."""


class Site:
    """A site's node towards the root, with the gradients of its worker."""

    def __init__(self, transport, shape, number, *, comes_back=False):
        name = shape.sites[number].name
        settings = ClientSettings(name=name, peer=ROOT, run="run", has_begun=comes_back)
        self.client = Client(settings, lambda: transport.connect(shape.root, 5.0), compression("none").up())
        self.number, self.covers = number, shape.sites[number].workers

    def bring(self, unit, values=None):
        terms = Terms(reduction="mean" if unit == GRADIENT else "sum", weight=2.0, covers=self.covers)
        return self.client.push(self.client.next_round(TREE, unit), values, terms)

    def step(self, step):
        return self.bring(GRADIENT, np.array([step, (self.number + 1) * 2.0**step], np.float32))

    def result(self, pending):
        result = self.client.wait(pending)
        return None if result.values is None else result.values.tolist(), result.weight


@pytest.fixture
def shape():
    return topology(2, 1)


@pytest.fixture
def transport():
    return MemoryTransport()


@pytest.fixture
def chosen():
    """How the sites keep in step."""
    return "fsa"


@pytest.fixture
def root(shape, transport, tmp_path, chosen):
    policy = synchronization(chosen).root()
    settings = AggregatorSettings(
        name=ROOT,
        run="run",
        children=frozenset(shape.children(ROOT)),
        faults=FaultRules(ends_with_process=True, leaves_out="quorum" in chosen),
    )
    root = Aggregator(
        settings, transport.listen(shape.root), TreeRouter(shape), policy, compression("none").down(), {}
    )
    root.answers = Answers(tmp_path / "answers", root.dock.answer, settings.children)
    serving = threading.Thread(target=root.serve)
    serving.start()
    yield root
    serving.join(20.0)
    assert not serving.is_alive()


def test_it_is_answered_what_it_was_and_nothing_counts_twice(root, shape, transport):
    one, other = (Site(transport, shape, number) for number in (0, 1))
    given = [one.bring(WEIGHTS, np.ones(2, np.float32)), other.bring(WEIGHTS)]
    first = [site.result(pending) for site, pending in zip((one, other), given, strict=True)]
    epochs = []
    for _epoch in range(2):
        pairs = [(one.step(step), other.step(step)) for step in range(STEPS)]
        epochs.append([(one.result(mine), other.result(its)) for mine, its in pairs])
        kept = [site.bring(NUMBER, np.ones(1)) for site in (one, other)]
        assert [site.result(pending) for site, pending in zip((one, other), kept, strict=True)]
    waiting = other.step(0)
    lost = one.step(0)  # counted, but whose answer nobody takes
    assert one.result(lost) == other.result(waiting)
    one.client._link.drop()
    one.client._link.close()

    again = Site(transport, shape, 0, comes_back=True)
    assert again.result(again.bring(WEIGHTS, np.zeros(2, np.float32))) == first[0]
    again.client.skip(TREE, GRADIENT, STEPS)
    again.client.skip(TREE, NUMBER, 1)
    for step, (mine, its) in enumerate(epochs[1]):
        assert again.result(again.step(step)) == mine == its
    assert again.result(again.bring(NUMBER, np.ones(1)))[0] == [2.0]
    waiting = other.step(1)
    again.step(0)
    assert again.result(again.step(1)) == other.result(waiting)
    for site in (again, other):
        site.client.close()


@pytest.mark.parametrize("chosen", ["fsa + quorum(workers=1, grace_s=3600)"])
def test_under_a_quorum_the_others_do_not_wait_until_it_has_caught_up(root, shape, transport):
    one, other = (Site(transport, shape, number) for number in (0, 1))
    given = [one.bring(WEIGHTS, np.ones(2, np.float32)), other.bring(WEIGHTS)]
    first = [site.result(pending) for site, pending in zip((one, other), given, strict=True)]
    one.client._link.drop()
    one.client._link.close()
    again = Site(transport, shape, 0, comes_back=True)
    assert again.result(again.bring(WEIGHTS, np.zeros(2, np.float32))) == first[0]
    alone = [other.result(other.step(step)) for step in range(3)]  # else after an hour
    assert [weight for _, weight in alone] == [2.0] * 3
    assert [again.result(again.step(step)) for step in range(3)] == alone
    mine = again.step(3)
    wait_until(lambda: not root.answers.behind(), "the site to have caught up", 20.0)
    both = other.result(other.step(3))
    assert again.result(mine) == both
    assert both[1] == 4.0
    for site in (again, other):
        site.client.close()
