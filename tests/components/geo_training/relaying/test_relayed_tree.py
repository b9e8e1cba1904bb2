"""Sites that relay for each other: every round's result is that of the tree, whatever goes wrong between."""

import threading

import numpy as np
import pytest
from geokfp.components._launch import free_ports
from geokfp.components.geo_training.links.client import Terms
from geokfp.components.geo_training.topology import ROOT
from geokfp.components.geo_training.transport.tcp import TcpTransport
from geokfp.components.geo_training.wire.messages import Answer, Push
from geokfp.components.geo_training.wire.relay_messages import Plan, Receipt
from geokfp.components.geo_training.wire.units import TREE, Unit
from support.geo_tree import at_once, topology, tree
from support.memory_transport import CUT, DROP, REPEAT, MemoryTransport

TSENGINE = "fifo + tsengine(explore=1)"
"""A trial in every round: sites relay whether it is quick or not."""
UNITS = tuple(Unit(f"gradient layer{number}", 0, 3) for number in range(4))
SITES = tuple(f"site-{number}" for number in range(4))


def values(number: int, index: int, layer: int) -> np.ndarray:
    return np.full(3, (number + 1.0) * index + layer, np.float32)


def train(client, number: int, num_rounds: int):
    """Pushes all units of a round at once, one round after the other; returns the results."""
    results = []
    for index in range(num_rounds):
        pending = [
            client.push(
                client.next_round(TREE, unit),
                values(number, index, layer) * (number + 1),
                Terms(reduction="mean", weight=number + 1),
            )
            for layer, unit in enumerate(UNITS)
        ]
        results.append([client.wait(one) for one in pending])
    client.close()
    return results


def assert_means(results, names):
    weights = np.arange(1.0, len(names) + 1)
    for per_worker in results.values():
        for index, units in enumerate(per_worker):
            for layer, result in enumerate(units):
                mean = np.average([values(n, index, layer)[0] for n in range(len(names))], weights=weights)
                assert result.weight == weights.sum()
                np.testing.assert_allclose(result.values, mean, rtol=1e-5)


class Seen:
    """Notes messages on their way; changes nothing."""

    def __init__(self, transport: MemoryTransport) -> None:
        self.messages: list = []
        self._lock = threading.Lock()
        transport.faults.add("none", self.note)

    def note(self, message) -> bool:
        with self._lock:
            self.messages.append(message)
        return False


@pytest.mark.parametrize("kind", ["memory", "tcp"])
def test_every_worker_gets_the_mean_of_all_sites_over_changing_trees(kind):
    memory = kind == "memory"
    shape = topology(4, 2, None if memory else free_ports(9), accepting=4)
    transport = MemoryTransport() if memory else TcpTransport()
    with tree(shape, transport, transmission=TSENGINE) as whole:
        results = at_once(
            lambda name: train(whole.client(name), shape.workers.index(name), 20), shape.workers
        )
    assert not whole.errors
    assert_means(results, shape.workers)
    assert whole.aggregators["site-0"].traffic().keys() & set(SITES)
    assert len(whole.used_trees) == 19, "all rounds but the first, which has no plan"
    for trees in whole.used_trees:
        assert set(trees.up) == set(trees.down) == set(SITES)


def test_sites_that_relay_merge_what_others_bring_and_all_hear_the_same_bytes():
    shape, transport = topology(4, 1, accepting=4), MemoryTransport()
    seen = Seen(transport)
    with tree(
        shape, transport, transmission=TSENGINE, compression="quantized(bits=4) + by_size(bound=0)"
    ) as whole:
        at_once(lambda name: train(whole.client(name), shape.workers.index(name), 20), shape.workers)
    assert not whole.errors
    of_sites = [m for m in seen.messages if isinstance(m, Push) and "/" not in m.sender]
    assert any(len(push.covers) > 1 for push in of_sites)
    assert len(of_sites) == 4 * 20 * len(UNITS), "each site hands on once"
    answers = {}
    for answer in (m for m in seen.messages if isinstance(m, Answer) and "quantized" in m.payload.codec):
        first = answers.setdefault(answer.round, answer)
        for one, other in zip(first.payload.buffers, answer.payload.buffers, strict=True):
            np.testing.assert_array_equal(one, other)
    assert len(answers) == 20 * len(UNITS)


@pytest.mark.parametrize("fault", [DROP, REPEAT, CUT])
@pytest.mark.parametrize("kind", [Push, Answer, Receipt, Plan])
def test_lost_repeated_and_cut_messages_between_sites_change_no_result(fault, kind):
    shape, transport = topology(3, 1, accepting=3), MemoryTransport()
    transport.faults.add(
        fault,
        lambda m: isinstance(m, kind) and "/" not in getattr(m, "sender", "") and number_of(m) >= 3,
        times=6,
    )
    with tree(shape, transport, transmission=TSENGINE, retry_s=0.2, stalled_s=0.5) as whole:
        results = at_once(
            lambda name: train(whole.client(name), shape.workers.index(name), 12), shape.workers
        )
    assert transport.faults.outstanding == 0
    assert not whole.errors
    assert_means(results, shape.workers)


def number_of(message) -> int:
    return message.number if isinstance(message, Plan) else message.round.number


def test_a_relay_that_nobody_reaches_is_gone_round():
    shape = topology(3, 1, accepting=3)
    transport = MemoryTransport()
    unreachable = shape.site("site-1").accepts
    connect = transport.connect

    def refuse(address, timeout_s):
        if address == unreachable:
            raise transport.refused(address)
        return connect(address, timeout_s)

    transport.connect = refuse
    with tree(shape, transport, transmission=TSENGINE, stalled_s=0.5) as whole:
        results = at_once(
            lambda name: train(whole.client(name), shape.workers.index(name), 12), shape.workers
        )
    assert not whole.errors
    assert_means(results, shape.workers)


def test_a_relay_that_is_cut_off_in_the_middle_is_gone_round():
    shape, transport = topology(3, 1, accepting=3), MemoryTransport()
    cut_off, made, connect = threading.Event(), [], transport.connect
    relay = shape.site("site-1").accepts

    def to_relay(address, timeout_s):
        if address != relay:
            return connect(address, timeout_s)
        if cut_off.is_set():
            raise transport.refused(address)
        made.append(connect(address, timeout_s))
        return made[-1]

    def cut(message) -> bool:
        """Ends all links to the relay while it holds another site's contribution."""
        if isinstance(message, Receipt) and message.round.number == 5 and not cut_off.is_set():
            cut_off.set()
            for connection in made:
                connection.close()
        return False

    transport.connect = to_relay
    transport.faults.add("none", cut)
    with tree(shape, transport, transmission=TSENGINE) as whole:
        results = at_once(
            lambda name: train(whole.client(name), shape.workers.index(name), 12), shape.workers
        )
    assert cut_off.is_set()
    assert not whole.errors
    assert_means(results, shape.workers)


def test_a_relay_that_gives_no_sign_is_gone_round_within_a_deadline():
    shape, transport = topology(3, 1, accepting=3), MemoryTransport()
    silent = {site.name for site in shape.sites}
    transport.faults.add(DROP, lambda m: isinstance(m, Push) and m.sender in silent and is_relayed(m), 10**6)

    def is_relayed(push) -> bool:
        trees = whole.relaying.plans.trees(push.round)
        return trees is not None and trees.up[push.sender] != ROOT and not sent_before(push)

    seen: set = set()

    def sent_before(push) -> bool:
        key = (push.sender, push.round)
        return key in seen or seen.add(key) is not None

    with tree(shape, transport, transmission=TSENGINE, stalled_s=0.2) as whole:
        results = at_once(lambda name: train(whole.client(name), shape.workers.index(name), 8), shape.workers)
    assert seen
    assert not whole.errors
    assert_means(results, shape.workers)


def test_only_sites_that_accept_relay():
    shape, transport = topology(3, 1, accepting=1), MemoryTransport()
    seen = Seen(transport)
    with tree(shape, transport, transmission=TSENGINE) as whole:
        results = at_once(
            lambda name: train(whole.client(name), shape.workers.index(name), 20), shape.workers
        )
    assert not whole.errors
    assert_means(results, shape.workers)
    relayed = [m for m in seen.messages if isinstance(m, Push) and "/" not in m.sender and len(m.covers) > 1]
    assert {push.sender for push in relayed} == {"site-0"}
    plans = [m for m in seen.messages if isinstance(m, Plan)]
    for plan in plans:
        for trees in (plan.best, plan.trial):
            assert {*trees.up.values(), *trees.down.values()} <= {"site-0", ROOT}


def test_one_site_alone_goes_to_the_root():
    shape, transport = topology(1, 2, accepting=1), MemoryTransport()
    with tree(shape, transport, transmission=TSENGINE) as whole:
        results = at_once(lambda name: train(whole.client(name), shape.workers.index(name), 5), shape.workers)
    assert not whole.errors
    assert_means(results, shape.workers)
