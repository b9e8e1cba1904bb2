"""A tree whose sites send in blocks: nothing is lost that is not sent again, and all get one answer."""

import random
from dataclasses import fields
from pathlib import Path

import geokfp.components.geo_training
import numpy as np
import pytest
from geokfp.components._files import InputError
from geokfp.components._launch import free_ports
from geokfp.components.geo_training.compression import compression
from geokfp.components.geo_training.compression.per_unit import PerUnit
from geokfp.components.geo_training.errors import ProtocolError
from geokfp.components.geo_training.links.answer_blocks import AnswerInbox, cut_answer
from geokfp.components.geo_training.links.client import Terms
from geokfp.components.geo_training.metrics.observer import Unobserved
from geokfp.components.geo_training.scheduling import transmission
from geokfp.components.geo_training.scheduling.dgt import Dgt
from geokfp.components.geo_training.scheduling.importance import Cut
from geokfp.components.geo_training.topology import ROOT
from geokfp.components.geo_training.transport import sealing
from geokfp.components.geo_training.transport.certificates import Certificates
from geokfp.components.geo_training.transport.tcp import TcpTransport
from geokfp.components.geo_training.transport.tls import TlsTransport
from geokfp.components.geo_training.tree_job import TreeJob
from geokfp.components.geo_training.wire.block_messages import Blocks, Received
from geokfp.components.geo_training.wire.messages import Answer, Payload, Push
from geokfp.components.geo_training.wire.units import TREE, RoundId, Unit, at_shard
from geokfp.pipelines._command_line.authority import Authority
from hypothesis import given
from hypothesis import strategies as st
from support.certificates import issue
from support.geo_tree import at_once, topology, tree
from support.lossy_datagrams import Loss
from support.memory_transport import CUT, DROP, REPEAT, MemoryTransport

README = Path(geokfp.components.geo_training.__file__).with_name("README.md").read_text(encoding="utf-8")
UNIT = Unit("gradient w", 0, 6000)
DGT = "fifo + dgt(fraction=0.3, adaptive=false, block_bytes=256)"
ROUNDS = 5


def values_of(name: str, number: int) -> np.ndarray:
    generator = np.random.default_rng([sum(map(ord, name)), number])
    return generator.integers(-50, 50, UNIT.count).astype(np.float32)


def train(whole, scope: str = TREE) -> dict[str, list[np.ndarray]]:
    """Sums some rounds of integers over all workers; returns each one's results."""

    def work(name: str) -> list[np.ndarray]:
        client = whole.client(name)
        results = []
        for number in range(ROUNDS):
            pending = client.push(
                client.next_round(scope, UNIT), values_of(name, number), Terms(reduction="sum", weight=1.0)
            )
            results.append(client.wait(pending).values)
        client.close()
        return results

    return at_once(work, whole.topology.workers)


def pushed(names) -> np.ndarray:
    return sum(values_of(name, number).astype(float) for name in names for number in range(ROUNDS))


def lossy(share: float):
    generator = random.Random(7)
    return Loss(lambda number, datagram: len(datagram) > 200 and generator.random() < share)


@pytest.mark.parametrize("share", [0.0, 0.3])
def test_what_the_root_counted_and_the_sites_kept_sum_to_what_was_pushed(share, monkeypatch):
    loss = lossy(share).install(monkeypatch)
    shape = topology(2, 2, free_ports(3))
    with tree(shape, TcpTransport(), transmission=DGT) as whole:
        loss.wait_until_open(ends=4)
        results = train(whole)
    assert not whole.errors
    assert loss.sent > 0
    first, *others = results.values()
    for other in others:
        for one, same in zip(first, other, strict=True):
            assert np.array_equal(one, same)
    kept = [cut.residual(TREE, UNIT) for cut in whole.cuts.values()]
    left = sum((residual for residual in kept if residual is not None), np.zeros(UNIT.count))
    assert np.array_equal(np.sum(first, axis=0, dtype=float) + left, pushed(shape.workers))
    if share:
        assert loss.lost > 0
    else:
        assert not left.any(), "what was there before the end of its push was late"


class Told(Unobserved):
    """Bytes of payloads, by link and round: of pushes and of answers, told at both ends of each link."""

    def __init__(self) -> None:
        self.pushes: dict[tuple[str, int], list[int]] = {}
        self.answers: dict[tuple[str, int], list[int]] = {}

    def pushed(self, link, round_id, payload, block_bytes=0):
        self.pushes.setdefault((link, round_id.number), []).append(payload.num_bytes + block_bytes)

    def answered(self, link, round_id, payload, block_bytes=0):
        self.answers.setdefault((link, round_id.number), []).append(payload.num_bytes + block_bytes)


def test_bytes_of_blocks_are_those_that_were_sent_and_those_that_were_counted(monkeypatch):
    loss, told = lossy(0.3).install(monkeypatch), Told()
    shape = topology(2, 1, free_ports(3))
    with tree(shape, TcpTransport(), transmission=DGT, observer=told) as whole:
        loss.wait_until_open(ends=4)
        train(whole)
        inbox = whole.aggregators[ROOT].dock._inbox
    assert loss.lost > 0
    cut, least = Cut(UNIT.count, 64), []
    for site in shape.sites:
        for number in range(ROUNDS):
            counted = inbox.counted(site.name, RoundId(TREE, UNIT, number))
            came = 4 * sum(cut.sizes(sorted(counted)))
            assert sorted(told.pushes[site.name, number]) == sorted([4 * UNIT.count + 4, came + 4])
            assert set(told.answers[site.name, number]) == {4 * UNIT.count + 8 * 3}
            assert set(told.pushes[site.workers[0], number]) == {4 * UNIT.count}
            least.append(came)
    assert min(least) < 4 * UNIT.count


def test_each_of_two_roots_has_datagrams_of_its_own(monkeypatch):
    loss = lossy(0.2).install(monkeypatch)
    shape = topology(2, 1, free_ports(4), accepting=1)
    scope = at_shard(TREE, 1)
    with tree(shape, TcpTransport(), transmission=f"{DGT} + multigps(shards=2)") as whole:
        loss.wait_until_open(ends=8)
        results = train(whole, scope)
    assert not whole.errors
    assert loss.sent > 0
    assert loss.lost > 0
    kept = {link: cut.residual(scope, UNIT) for link, cut in whole.cuts.items()}
    assert kept.keys() == {f"site-{i}{root}" for i in (0, 1) for root in ("", " to root-1")}
    assert all(cut.residual(TREE, UNIT) is None for cut in whole.cuts.values())
    assert kept["site-0"] is None
    assert kept["site-1"] is None
    left = sum((residual for residual in kept.values() if residual is not None), np.zeros(UNIT.count))
    first, second = results.values()
    assert np.array_equal(first, second)
    assert np.array_equal(np.sum(first, axis=0, dtype=float) + left, pushed(shape.workers))


def test_beside_tls_datagrams_are_encrypted_and_nothing_is_lost(monkeypatch, tmp_path):
    loss = lossy(0.2).install(monkeypatch)
    folder = issue(tmp_path, ["root", "site-0", "site-1"], Authority(days=2))
    shape = topology(2, 1, free_ports(3))
    transport = TlsTransport(Certificates(folder, "root"), "root")  # of a node with all names
    with tree(shape, transport, transmission=DGT, secret=True) as whole:
        loss.wait_until_open(ends=4)
        results = train(whole)
    assert not whole.errors
    assert loss.lost > 0
    kept = [cut.residual(TREE, UNIT) for cut in whole.cuts.values()]
    left = sum((residual for residual in kept if residual is not None), np.zeros(UNIT.count))
    first, second = results.values()
    assert np.array_equal(first, second)
    assert np.array_equal(np.sum(first, axis=0, dtype=float) + left, pushed(shape.workers))


def to_the_root(kind: type, number: int):
    return lambda message: isinstance(message, kind) and message.round == RoundId(TREE, UNIT, number)


@pytest.mark.parametrize("fault", [CUT, DROP, REPEAT])
@pytest.mark.parametrize("kind", [Push, Blocks, Answer])
def test_a_connection_that_fails_loses_nothing(fault, kind, monkeypatch):
    lossy(0.2).install(monkeypatch)
    transport = MemoryTransport()
    for number in (1, 3):
        transport.faults.add(fault, to_the_root(kind, number), times=2)
    shape = topology(2, 1, free_ports(3))
    with tree(shape, transport, transmission=DGT, retry_s=0.3) as whole:
        results = train(whole)
    assert not whole.errors
    assert transport.faults.outstanding == 0
    kept = [cut.residual(TREE, UNIT) for cut in whole.cuts.values()]
    left = sum((residual for residual in kept if residual is not None), np.zeros(UNIT.count))
    first = results[shape.workers[0]]
    assert np.array_equal(np.sum(first, axis=0, dtype=float) + left, pushed(shape.workers))


def test_where_no_datagram_comes_through_all_is_sent_reliably_and_it_is_said_once(monkeypatch, capsys):
    Loss(lambda number, datagram: True).install(monkeypatch)
    shape = topology(2, 1, free_ports(3))
    with tree(shape, TcpTransport(), transmission=DGT) as whole:
        results = train(whole)
    assert not whole.errors
    total = np.sum(results[shape.workers[0]], axis=0, dtype=float)
    assert np.array_equal(total, pushed(shape.workers))
    assert capsys.readouterr().out.count("do not come back") <= 2


def test_a_fraction_of_one_is_fifo_bit_for_bit():
    counts = {}
    for text in ("fifo", "fifo + dgt(fraction=1)"):
        shape = topology(2, 1, free_ports(3))
        with tree(shape, TcpTransport(), transmission=text) as whole:
            counts[text] = train(whole)
        assert not whole.errors
    plain, cut = counts.values()
    for one, other in zip(plain.values(), cut.values(), strict=True):
        for a, b in zip(one, other, strict=True):
            assert np.array_equal(a, b)


def answer_of(technique: str, count: int) -> Answer:
    values = np.random.default_rng(0).normal(size=count).astype(np.float32)
    payload = PerUnit(lambda _: compression(technique).spec.technique.towards_root()).encode(
        Unit("gradient", 0, count), values
    )
    return Answer(RoundId(TREE, Unit("gradient", 0, count), 4), 3.0, payload, 2)


@given(st.sampled_from(["none", "fp16", "top_k(ratio=0.1)"]), st.integers(1, 5000), st.data())
def test_an_answer_is_whole_once_all_blocks_are_there(technique, count, data):
    answer = answer_of(technique, count)
    cut, inbox = cut_answer(answer, 512), AnswerInbox()
    order = data.draw(st.permutations(list(cut.blocks)))
    lost = data.draw(st.sets(st.sampled_from(range(len(order)))))
    for number, message in enumerate(order):
        if number not in lost:
            inbox.take(message, 0.0)
    whole, received = inbox.whole(cut.marker)
    came = frozenset(message.numbers[0] for number, message in enumerate(order) if number not in lost)
    assert received == Received(answer.round, came)
    assert (whole is None) == bool(lost)
    for number in lost:
        inbox.take(order[number], 0.0)
    if lost:
        whole, _ = inbox.whole(cut.marker)
    assert (whole.round, whole.weight, whole.priority) == (answer.round, answer.weight, answer.priority)
    assert (whole.payload.codec, whole.payload.dtype) == (answer.payload.codec, answer.payload.dtype)
    for one, other in zip(whole.payload.buffers, answer.payload.buffers, strict=True):
        assert one.dtype == other.dtype
        assert np.array_equal(one, other)


@pytest.mark.parametrize(
    "layout", [[], [512], [512, 1], [0, 1, 100], [512, 99, 100], [512, 1, -1], [512, 1, 1 << 40]]
)
def test_an_answer_without_a_layout_is_the_peers_error(layout):
    payload = Payload("cut/dense", "<f4", (np.array(layout, "<i8"),))
    with pytest.raises(ProtocolError, match="layout"):
        AnswerInbox().whole(Answer(RoundId(TREE, UNIT, 0), 1.0, payload))


def test_a_block_of_other_bytes_is_the_peers_error():
    with pytest.raises(ProtocolError, match="number and bytes"):
        AnswerInbox().take(Blocks(RoundId(TREE, UNIT, 0), 4, (0, 1), Payload("dense", "|u1", ())), 0.0)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ("fraction=1.2", "fraction is 1.2, allowed: a number at least 0 and at most 1"),
        ("channels=0", "channels is 0, allowed: a whole number at least 1 and at most 7"),
        ("block_bytes=4096", "block_bytes is 4096, allowed: a whole number at least 64 and at most 1024"),
        ("alpha=1", "alpha is 1.0, allowed: a number at least 0 and below 1"),
        ("adaptive=yes", "adaptive is 'yes', allowed: true or false"),
        ("k=0.8", "option of dgt is 'k', allowed: adaptive, "),
    ],
)
def test_a_wrong_option_is_refused_by_name(options, reason):
    with pytest.raises(InputError) as caught:
        transmission(f"fifo + dgt({options})")
    assert reason in str(caught.value)


def test_beside_tls_datagrams_need_a_library_which_is_named(monkeypatch):
    chosen = {"run_id": "run", "workers": {"site-0": 1}, "topology": topology(1, 1), "transmission": DGT}
    TreeJob(certificates="certificates", **chosen)
    monkeypatch.setattr(sealing, "find_spec", lambda _: None)
    TreeJob(**chosen)
    with pytest.raises(InputError, match="dgt over TLS needs the package cryptography"):
        TreeJob(certificates="certificates", **chosen)


def test_the_readme_has_the_options_and_defaults():
    options = [f"{each.name}={str(getattr(Dgt(), each.name)).lower()}" for each in fields(Dgt)]
    assert f"`dgt({', '.join(options)})`" in README
