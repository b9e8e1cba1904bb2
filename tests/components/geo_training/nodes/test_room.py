"""Who is far ahead is held back, and nobody for ever, whatever children do in whatever order."""

import random
import threading

import numpy as np
import pytest
from geokfp.components._launch import free_ports
from geokfp.components.geo_training.links.client import Terms
from geokfp.components.geo_training.nodes import gate, room
from geokfp.components.geo_training.nodes.room import LEAST_BYTES, MOST_MODELS, Room
from geokfp.components.geo_training.topology import ROOT
from geokfp.components.geo_training.transport.tcp import TcpTransport
from geokfp.components.geo_training.wire.units import TREE, RoundId, Unit
from hypothesis import given, settings
from hypothesis import strategies as st
from support.faults import wait_until
from support.geo_tree import at_once, topology, tree

CHILDREN = ("a", "b", "c", "d")
BYTES = LEAST_BYTES // 8
UNITS = tuple(Unit("gradient w", place, 1) for place in range(24))
MODEL = BYTES * len(UNITS)


def nobody(_round: RoundId) -> frozenset[str]:
    return frozenset()


def round_of(unit: Unit, number: int) -> RoundId:
    return RoundId(TREE, unit, number)


class Node:
    """Finishes a round when all children are in it; the model is known from a round before."""

    def __init__(self) -> None:
        self.room = Room(CHILDREN)
        self.open: dict[RoundId, set[str]] = {}
        self.finished: set[RoundId] = set()
        self.most = 0
        for unit in UNITS:
            for child in CHILDREN:
                self.bring(child, round_of(unit, 0))
        self.most = 0

    def lets_in(self, child: str, round_id: RoundId) -> bool:
        return self.room.lets_in(child, round_id, nobody)

    def bring(self, child: str, round_id: RoundId) -> None:
        came = self.open.setdefault(round_id, set())
        came.add(child)
        if len(came) == len(CHILDREN):
            self.room.finished(round_id)
            self.finished.add(round_id)
        else:
            self.room.brought(child, round_id, BYTES)
        self.most = max(self.most, self.room.held_bytes)


class Child:
    """Pushes a unit, or waits for what it last pushed of it; what it has pushed overtakes on the way."""

    def __init__(self, name: str, node: Node, program: list[int], chance: random.Random) -> None:
        self.name, self.node, self.chance = name, node, chance
        self.program = list(program)
        self.numbers: dict[int, int] = {}
        self.awaited: dict[int, RoundId] = {}
        self.said: list[RoundId] = []
        self.held_back: RoundId | None = None

    def step(self) -> bool:
        """Does one thing if it can."""
        if self.program and self._goes_on(self.program[0]):
            self.program.pop(0)
            return True
        if self.held_back is None and self.said:
            self.held_back = self.said.pop(self.chance.randrange(len(self.said)))
            return True
        if self.held_back is not None and self.node.lets_in(self.name, self.held_back):
            self.node.bring(self.name, self.held_back)
            self.held_back = None
            return True
        return False

    def _goes_on(self, place: int) -> bool:
        if place in self.awaited:
            return self.awaited[place] in self.node.finished and bool(self.awaited.pop(place))
        self.numbers[place] = self.numbers.get(place, 0) + 1
        self.awaited[place] = round_of(UNITS[place], self.numbers[place])
        self.said.append(self.awaited[place])
        return True


def play(node: Node, children: list[Child], chance: random.Random, slow: float = 0.0) -> None:
    """Lets children go on in a random order until all is done; one that is slow often does nothing."""
    while any(child.program or child.said or child.held_back for child in children):
        order = chance.sample(children, len(children))
        late = [child for child in order if child.name == "a" and chance.random() < slow]
        assert any(child.step() for child in order if child not in late) or late, "all stand still"


@settings(max_examples=8)
@given(st.integers(0, 1 << 30), st.sampled_from([0.0, 0.9]))
def test_children_that_do_the_same_never_stand_still_whatever_overtakes(seed, slow):
    chance = random.Random(seed)
    program = [chance.randrange(len(UNITS)) for _ in range(200)]
    node = Node()
    play(node, [Child(name, node, program, chance) for name in CHILDREN], chance, slow)


@settings(max_examples=8)
@given(st.integers(0, 1 << 30))
def test_children_in_one_order_are_ahead_by_the_budget_at_most(seed):
    chance, node = random.Random(seed), Node()
    program = list(range(len(UNITS)))

    class InOrder(random.Random):
        def randrange(self, *_):
            return 0

    children = [Child(name, node, program, InOrder()) for name in CHILDREN]
    play(node, children, chance, slow=0.98)
    assert node.most <= MOST_MODELS * MODEL + len(CHILDREN) * BYTES


@settings(max_examples=8)
@given(st.integers(0, 1 << 30))
def test_children_in_orders_of_their_own_go_on_by_turns(seed):
    chance, node = random.Random(seed), Node()
    programs = [chance.sample(range(len(UNITS)), len(UNITS)) for _ in CHILDREN]
    play(
        node,
        [Child(name, node, one, chance) for name, one in zip(CHILDREN, programs, strict=True)],
        chance,
    )
    assert node.room.held_bytes == 0


def test_after_a_time_some_come_in_in_any_case(monkeypatch):
    monkeypatch.setattr(gate, "MOST_S", 0.0)
    monkeypatch.setattr(gate, "THEN_BYTES", 100)
    node = Node()
    for unit in UNITS[:12]:
        node.bring("a", round_of(unit, 1))
    new = round_of(UNITS[12], 1)
    held = gate.Gate(node.room, threading.Lock(), nobody)
    waits = [held.wait("a", new, 60) > 0 for _ in range(4)]
    assert waits == [True, False, True, False]
    assert held.wait("a", round_of(UNITS[12], 0), 60) == 0.0  # it is finished
    assert held.wait("a", round_of(UNITS[0], 1), 60) == 0.0
    held.end()
    assert [held.wait("a", new, 60) for _ in range(4)] == [0.0] * 4


def test_who_need_not_come_holds_nobody_back():
    node, others = Node(), CHILDREN[:2]
    orders = {others[0]: UNITS, others[1]: UNITS[::-1]}
    for child, unit in [(child, orders[child][place]) for place in range(12) for child in others]:
        round_id = round_of(unit, 1)
        if not node.lets_in(child, round_id):
            assert node.room.lets_in(child, round_id, lambda _round: CHILDREN[2:])
            return
        node.bring(child, round_id)
    pytest.fail("nobody was held back")


def test_a_site_in_the_reverse_order_of_the_others_ends_every_round_that_they_are_held_back_from(monkeypatch):
    monkeypatch.setattr(room, "LEAST_BYTES", 0)
    monkeypatch.setattr(gate, "MOST_S", 50.0)
    units = [Unit("gradient w", 10_000 * place, 10_000) for place in range(16)]
    model = 4 * sum(unit.count for unit in units)
    shape = topology(4, 1, free_ports(5))
    *quick, last = (site.name for site in shape.sites)

    def values(name: str, unit: Unit) -> np.ndarray:
        return np.full(unit.count, int(name[-1]) + unit.offset / 7, np.float32)

    with tree(shape, TcpTransport()) as whole:
        presence = whole.aggregators[ROOT]._presence

        def site(name: str) -> list[np.ndarray]:
            client = whole.client(f"{name}/trainer-0")
            results = []
            for number in range(2):
                is_last = number == 1 and name == last
                if is_last:
                    wait_until(lambda: len(presence.gate._waiting) == len(quick), "those ahead", 40.0)
                    held.append(presence.gate._room.held_bytes)
                order = units[::-1] if is_last else units
                pushes = {
                    unit: client.push(
                        client.next_round(TREE, unit), values(name, unit), Terms(reduction="sum")
                    )
                    for unit in order
                }
                results += [client.wait(pushes[unit]).values for unit in units]
            client.close()
            return results

        held: list[int] = []
        results = at_once(site, [*quick, last])
    assert not whole.errors
    assert 0 < held[0] <= MOST_MODELS * model + len(quick) * 4 * units[0].count
    wanted = [values("0", unit) for unit in units]
    for name in (*quick[1:], last):
        wanted = [total + values(name, unit) for total, unit in zip(wanted, units, strict=True)]
    for result in results.values():
        for one, total in zip(result, [*wanted, *wanted], strict=True):
            assert np.array_equal(one, total)
