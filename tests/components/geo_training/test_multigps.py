"""Several roots: each unit on exactly one, about as many bytes on each, and the weights of one root."""

import numpy as np
import pytest
from geokfp.components._files import InputError
from geokfp.components.geo_training.compression import compression as named
from geokfp.components.geo_training.errors import ProtocolError
from geokfp.components.geo_training.nodes.shards import ShardRouter, shards_of
from geokfp.components.geo_training.scheduling import transmission
from geokfp.components.geo_training.scheduling.placement import placed
from geokfp.components.geo_training.topology import read
from geokfp.components.geo_training.tree_job import TreeJob
from geokfp.components.geo_training.wire.units import (
    OWN,
    TREE,
    RoundId,
    Unit,
    at_shard,
    shard_of,
    whole_scope,
)
from geokfp.components.geo_training.workers.plane import Layout, Members, Plane
from hypothesis import given
from hypothesis import strategies as st
from support.geo_tree import at_once, topology, tree
from support.memory_transport import MemoryTransport
from support.vector_training import one_model, train

TWO = "fifo + multigps(shards=2)"
counts = st.lists(st.integers(1, 1 << 20), max_size=60)


@given(counts, st.integers(1, 8))
def test_each_unit_is_on_one_root_and_none_has_more_than_the_mean_and_a_unit(sizes, num_shards):
    units = [Unit(f"w{index}", 0, count) for index, count in enumerate(sizes)]
    shard = placed(units, num_shards)
    assert set(shard) == set(units)
    assert set(shard.values()) <= set(range(num_shards))
    loads = [sum(unit.count for unit in units if shard[unit] == one) for one in range(num_shards)]
    assert max(loads) <= sum(sizes) / num_shards + max(sizes, default=0)


@given(counts, st.integers(1, 8), st.randoms(use_true_random=False))
def test_the_order_of_units_does_not_matter(sizes, num_shards, random):
    units = [Unit(f"w{index}", 0, count) for index, count in enumerate(sizes)]
    mixed = list(units)
    random.shuffle(mixed)
    assert placed(units, num_shards) == placed(mixed, num_shards)


@given(st.sampled_from([TREE, f"{OWN}site-0", f"{OWN}oslo 1"]), st.integers(0, 9))
def test_a_scope_says_its_root(scope, shard):
    moved = at_shard(scope, shard)
    assert (whole_scope(moved), shard_of(moved)) == (scope, shard)


def test_a_round_ends_at_the_root_of_its_scope_with_the_same_workers():
    shape = topology(2, 2, accepting=1)
    router = ShardRouter(shape, ("root", "root-1"))
    for scope, workers in ((TREE, set(shape.workers)), (f"{OWN}site-1", set(shape.sites[1].workers))):
        moved = router.route(RoundId(at_shard(scope, 1), Unit("gradient w", 0, 1), 0), "site-1")
        assert moved.next_hop("site-1") == "root-1"
        assert moved.next_hop("root-1") is None
        assert moved.expected("root-1") == workers
        assert (
            router.route(RoundId(scope, Unit("gradient w", 0, 1), 0), "site-1").next_hop("site-1") == "root"
        )
    with pytest.raises(ProtocolError, match="is of root 3, and there are 2"):
        router.route(RoundId(at_shard(TREE, 2), Unit("gradient w", 0, 1), 0), "site-1")


@pytest.mark.parametrize("compression", ["none", "fp16", "top_k", "mpq(bound=10000)"])
@pytest.mark.parametrize("most_bytes", [0, 100, 5000, 1 << 30])
def test_no_slice_is_cut_so_short_that_frames_or_the_compression_suffer(compression, most_bytes):
    job = TreeJob(run_id="a", workers=WORKERS, topology=read({}, WORKERS, (1, 2, 3)), compression=compression)
    cut = job.slices.finer(most_bytes).cut("gradient w", 1_000_000, 4)
    assert cut[0].count >= max(1024, named(compression).least_values)
    assert cut[0].count <= job.slices.cut("gradient w", 1_000_000, 4)[0].count


WORKERS = {"oslo": 1, "rome": 1}
ROME = {"root": "10.0.0.1:7000", "sites": {"rome": {"accepts": "10.0.0.2:7100"}}}


@pytest.mark.parametrize(
    ("options", "text", "where"),
    [
        (ROME, "multigps(shards=2)", [("root-1", "10.0.0.2:7100", "rome")]),
        (ROME, "multigps(at=root)", [("root-1", "10.0.0.1:7001", None)]),
        ({"root": "a:7"}, "multigps(shards=3, at=root)", [("root-1", "a:8", None), ("root-2", "a:9", None)]),
    ],
)
def test_where_the_roots_are(options, text, where):
    topology = read(options, WORKERS, (1, 2, 3))
    first, *others = shards_of(topology, transmission(f"fifo + {text}").multigps)
    assert (first.name, first.address, first.site) == ("root", topology.root, None)
    assert [(root.name, str(root.address), root.site) for root in others] == where


@pytest.mark.parametrize(
    ("options", "text", "reason"),
    [
        ({}, "multigps", r"multigps\(shards=2, at=sites\) needs 1 sites that accept .*has 0 .*or at=root"),
        (ROME, "multigps(shards=3)", "needs 2 sites that accept connections, topology has 1 with 'accepts'"),
        ({"root": "a:65535"}, "multigps(at=root)", "topology root is a:65535, allowed .* at most 65534"),
        ({}, "multigps(shards=1)", "shards is 1, allowed: a whole number at least 2"),
        ({}, "multigps(at=home)", "at is 'home', allowed: one of sites, root"),
    ],
)
def test_roots_that_cannot_be_are_refused_by_name(options, text, reason):
    topology = read(options, WORKERS, (1, 2, 3))
    with pytest.raises(InputError, match=reason):
        TreeJob(run_id="a", workers=WORKERS, topology=topology, transmission=f"fifo + {text}")


def test_a_root_that_keeps_checkpoints_by_itself_is_alone():
    topology = read({}, WORKERS, (1, 2, 3))
    choices = {"synchronization": "fsa(optimizer=adam)", "checkpoint_folder": "kept", "checkpoint_every": 3}
    with pytest.raises(InputError, match="checkpoint_every is 3, allowed with multigps: 0"):
        TreeJob(
            run_id="a",
            workers=WORKERS,
            topology=topology,
            transmission="fifo + multigps(at=root)",
            **choices,
        )


@pytest.mark.parametrize(
    ("text", "compression"),
    [
        ("fsa", "none"),
        ("fsa", "top_k(ratio=0.3) + by_size(bound=0)"),
        ("fsa(optimizer=adam(rate=0.1))", "none"),
        ("hfa(k1=2) + outer(momentum=0.5)", "fp16(feedback=1.0)"),
        ("hfa(k1=4) + streamed(fragments=2)", "none"),
    ],
)
def test_two_roots_come_to_the_weights_of_one(text, compression):
    one = one_model(train(text, 7, compression=compression)[1])
    shape = topology(2, 2, accepting=1)
    both = one_model(train(text, 7, shape, compression=compression, transmission=TWO)[1])
    np.testing.assert_array_equal(both, one)


def test_with_own_rounds_of_the_sites_too_all_end_with_one_model():
    shape = topology(2, 2, accepting=1)
    weights = one_model(train("mixed", 6, shape, transmission=TWO)[1])
    assert 0 < np.abs(weights).max() < 2


def test_half_of_the_bytes_are_on_each_roots_link_also_of_one_large_tensor():
    layout = Layout.of([("large", 300_000), ("bias", 300), ("medium", 50_000)])
    shape = topology(2, 1, accepting=2)

    def work(name):
        plane = Plane(whole.client(name), Members(workers=shape.workers, name=name), None, len(whole.roots))
        plane.place(layout)
        values = np.full(layout.count, float(plane.index), np.float32)
        mean = plane.mean("gradient", layout, values, 1.0).wait()
        np.testing.assert_array_equal(mean, np.full(layout.count, 0.5, np.float32))
        links = plane.client.peer_traffic()
        plane.close()
        return links["root"].sent_bytes, links["root-1"].sent_bytes

    with tree(shape, MemoryTransport(), transmission=TWO) as whole:
        of_sites = at_once(work, shape.workers).values()
    for sent in of_sites:
        assert sum(sent) > 4 * layout.count
        assert max(sent) / sum(sent) < 0.55
