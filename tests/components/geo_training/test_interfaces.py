"""One conformance suite an interface, over all implementations; and the topology and its routes."""

from itertools import accumulate

import numpy as np
import pytest
from geokfp.components._files import InputError
from geokfp.components.geo_training.compression import decode
from geokfp.components.geo_training.config import GeoTrainingConfig
from geokfp.components.geo_training.errors import ProtocolError
from geokfp.components.geo_training.nodes.route import TreeRouter
from geokfp.components.geo_training.nodes.shards import shards_of
from geokfp.components.geo_training.scheduling import InOrder, transmission
from geokfp.components.geo_training.synchronization import TECHNIQUES, synchronization
from geokfp.components.geo_training.topology import ROOT, read
from geokfp.components.geo_training.tree_job import TreeJob
from geokfp.components.geo_training.wire.messages import NOTHING, Payload
from geokfp.components.geo_training.wire.units import SITE, TREE, RoundId, Unit
from hypothesis import given
from hypothesis import strategies as st

UNIT = Unit("gradient", 0, 8)
WORKERS = {"paris": 2, "oslo": 3}


def test_what_no_codec_writes_is_the_peers_error():
    assert decode(UNIT, NOTHING) is None
    with pytest.raises(ProtocolError, match="codec 'zip' is not known"):
        decode(UNIT, Payload("zip", "<f4", ()))
    with pytest.raises(ProtocolError, match="one buffer"):
        decode(UNIT, Payload("dense", "<f4", ()))
    with pytest.raises(ProtocolError, match="one buffer"):
        decode(UNIT, Payload("dense", "<f4", (np.zeros(8, "<f8"),)))


@given(st.integers(0, 300), st.integers(1, 400), st.sampled_from([1, 4, 8]))
def test_slices_cover_the_key_once_in_order_and_within_their_size(count, slice_bytes, itemsize):
    units = InOrder(slice_bytes).cut("key", count, itemsize)
    assert [unit.offset for unit in units] == [0, *accumulate(unit.count for unit in units)][:-1]
    assert sum(unit.count for unit in units) == count
    assert all(unit.count * itemsize <= max(slice_bytes, itemsize) for unit in units)
    assert len(units) >= 1


@pytest.mark.parametrize("name", [*TECHNIQUES, "fsa + quorum(workers=1)"])
@pytest.mark.parametrize("end", ["node", "root"])
def test_a_round_is_finished_when_all_are_in(name, end):
    rule = getattr(synchronization(name), end)().rule(RoundId(TREE, UNIT, 0))
    assert rule.finished(frozenset("ab"), frozenset(), frozenset("ab"), 0.0)


def test_every_route_of_the_tree_leads_every_worker_to_its_end():
    router = TreeRouter(read({}, WORKERS, (1, 2, 3)))
    whole = {f"{site}/trainer-{i}" for site, count in WORKERS.items() for i in range(count)}
    round_id = RoundId(TREE, UNIT, 0)
    assert router.route(round_id, ROOT).expected(ROOT) == whole
    assert router.route(round_id, "oslo").expected("oslo") == {w for w in whole if w.startswith("oslo")}
    for worker in whole:
        hops, node = [], worker
        while (node := router.route(round_id, node).next_hop(node)) is not None:
            hops.append(node)
        assert hops == [worker.partition("/")[0], ROOT]


def test_a_site_route_ends_at_the_site_and_passes_the_root_by():
    router = TreeRouter(read({}, WORKERS, (1, 2, 3)))
    round_id = RoundId(SITE, UNIT, 0)
    assert router.route(round_id, "oslo").next_hop("oslo") is None
    with pytest.raises(ProtocolError, match="no route"):
        router.route(round_id, ROOT)
    with pytest.raises(ProtocolError, match="no route"):
        router.route(RoundId("moon", UNIT, 0), "oslo")


def test_a_topology_takes_given_addresses_and_free_ports_for_the_rest():
    of_oslo = {"listens": "oslo.example:7001", "accepts": "oslo.example:7002"}
    options = {"root": "hub.example:7000", "sites": {"oslo": of_oslo}}
    topology = read(options, WORKERS, (9001, 9002))
    assert str(topology.address(ROOT)) == "hub.example:7000"
    assert str(topology.address("oslo/trainer-1")) == "oslo.example:7001"
    assert str(topology.address("paris")) == "127.0.0.1:9001"
    assert [(site.name, str(site.accepts)) for site in topology.accepting] == [("oslo", of_oslo["accepts"])]
    assert read(topology.to_dict(), WORKERS, ()) == topology
    assert topology.children(ROOT) == ("paris", "oslo")
    assert topology.children("paris") == ("paris/trainer-0", "paris/trainer-1")


def test_a_node_binds_another_address_than_the_one_that_others_dial():
    options = {
        "root": "hub.example:443",
        "sites": {"oslo": {"accepts": "oslo.example:443"}},
        "binds": {"hub.example:443": "0.0.0.0:7000", "oslo.example:443": "0.0.0.0:7002"},
    }
    topology = read(options, WORKERS, (9001, 9002))
    first, second, third = shards_of(topology, transmission("fifo + multigps(shards=3, at=root)").multigps)
    assert [str(root.address) for root in (first, second, third)] == [
        f"hub.example:{n}" for n in (443, 444, 445)
    ]
    assert [str(root.binds) for root in (first, second, third)] == [
        f"0.0.0.0:{n}" for n in (7000, 7001, 7002)
    ]
    _, at_oslo = shards_of(topology, transmission("fifo + multigps(shards=2, at=sites)").multigps)
    assert (str(at_oslo.address), str(at_oslo.binds)) == ("oslo.example:443", "0.0.0.0:7002")
    assert str(topology.bound(topology.address("paris"))) == "127.0.0.1:9001"
    assert read(topology.to_dict(), WORKERS, ()) == topology


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"hub": "a:1"}, r"topology has \['hub'\], allowed: root, sites, binds"),
        ({"root": "a"}, r"topology\['root'\] is 'a', allowed: host:port"),
        ({"root": "a:0"}, "allowed: host:port"),
        ({"root": 7000.0}, "allowed: host:port"),
        ({"sites": []}, r"topology\['sites'\] is \[\]"),
        ({"sites": {"oslo": {"takes": "a:1"}}}, r"\['takes'\], allowed: listens, accepts"),
        ({"sites": {"oslo": {"accepts": "a"}}}, r"\['accepts'\] is 'a', allowed: host:port"),
        (
            {"sites": {"oslo": {"listens": "a:1", "accepts": "a:1"}}},
            r"\['accepts'\] is 'a:1', allowed: another",
        ),
        ({"sites": {"oslo": 3}}, "allowed: a mapping with listens, accepts"),
        ({"sites": {"rome": {}}}, r"names \['rome'\], allowed: \['oslo', 'paris'\]"),
        (
            {"root": "a:1", "sites": {"oslo": {"listens": "a:1"}}},
            r"\['listens'\] is 'a:1', allowed: another address than topology\['root'\]",
        ),
        ({"sites": {"oslo": {"listens": "127.0.0.1:1"}}}, "each address once"),
        ({"binds": ["0.0.0.0:1"]}, r"\['binds'\] is \['0.0.0.0:1'\], allowed: a mapping of addresses"),
        ({"root": "a:1", "binds": {"a": "b:1"}}, r"\['binds'\] is 'a', allowed: host:port"),
        ({"root": "a:1", "binds": {"a:1": "b"}}, r"\['binds'\]\['a:1'\] is 'b', allowed: host:port"),
        ({"root": "a:1", "binds": {"a:2": "b:1"}}, r"names \['a:2'\], allowed: .* gives: \['a:1'\]"),
    ],
)
def test_a_wrong_topology_names_option_value_and_what_is_allowed(options, reason):
    with pytest.raises(InputError, match=reason):
        read(options, WORKERS, (1, 2, 3))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("topology.json", '{"root": "127.0.0.1:7000"}'),
        ("topology.json", '{\n\t"root": "127.0.0.1:7000"\n}'),
        ("topology.yaml", "root: 127.0.0.1:7000  # of this machine\n"),
        ("topology", '{"root": "127.0.0.1:7000"}'),
    ],
)
def test_a_topology_may_be_a_file_of_yaml_or_json(tmp_path, name, text):
    path = tmp_path / name
    path.write_text(text)
    assert GeoTrainingConfig(topology={"file": str(path)}).topology == {"root": "127.0.0.1:7000"}


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("a.json", '{"root":\n a', "line 2: not JSON"),
        ("a.json", b"\xff", "not JSON"),
        ("a.json", "[]", "no mapping"),
        ("a.json", '{"file": "a"}', "no mapping"),
        ("a.yaml", "root: a:1\nsites: [\n", "line 3: not YAML"),
        ("a.yaml", "root: a:1\nsites: {}\nroot: b:1\n", "line 3: 'root' is there twice"),
        ("a.yaml", "root: !!python/name:os.system\n", "line 1: not YAML"),
        ("a.yaml", b"root: \xff", "not YAML"),
        ("a.yaml", "- root", "no mapping"),
        ("a.yaml", "", "no mapping"),
        ("a.yaml", "root: 3", r"topology\['root'\] is 3"),
    ],
)
def test_a_wrong_file_of_a_topology_is_named_with_the_line(tmp_path, name, text, reason):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(InputError, match=rf"^(topology\['file'\]: .*{name}.* )?{reason}"):
        GeoTrainingConfig(topology={"file": str(path)})


def test_a_file_of_a_topology_that_cannot_be_read_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"topology\['file'\]: .*absent: no such file"):
        GeoTrainingConfig(topology={"file": str(tmp_path / "absent")})
    with pytest.raises(InputError, match=r"topology\['file'\] is 3, allowed: path or URI"):
        GeoTrainingConfig(topology={"file": 3})


@pytest.mark.parametrize("names", [("root",), ("a/b",), ()])
def test_site_names_that_cannot_be_nodes_are_refused(names):
    with pytest.raises(InputError, match="sites are"):
        read({}, dict.fromkeys(names, 1), (1, 2, 3))


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"synchronization": "sometimes"}, "synchronization 'sometimes': name is 'sometimes', allowed: "),
        ({"synchronization": "esync"}, "unequal numbers of steps, .*, allowed: fsa, .*, auto"),
        ({"compression": "zip"}, "compression 'zip': name is 'zip', allowed: auto, bi_sparse, "),
        ({"transmission": "p4"}, "transmission 'p4': name is 'p4', allowed: fifo, p3; nearest: p3"),
        ({"transmission": "p3(slice_ms=0)"}, "slice_ms is 0.0, allowed: a number at least 1"),
        ({"topology": {"hub": 1}}, "topology has"),
        ({"round_timeout_s": 0}, "round_timeout_s 0: must be at least 1"),
        ({"epochs": 0}, "epochs 0: must be at least 1"),
    ],
)
def test_a_wrong_option_is_refused_before_anything_starts(options, reason):
    with pytest.raises(InputError, match=reason):
        GeoTrainingConfig(**options)


def test_the_options_of_a_workers_loop_have_the_same_defaults_in_both_stages():
    assert GeoTrainingConfig().training == type(GeoTrainingConfig().training)()


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        ("none", [32768] * 9 + [5088]),
        ("fp16", [65536] * 4 + [37856]),
        ("mpq", [300_000]),  # else no slice would be large enough to be sparse
        ("top_k", [300_000]),
    ],
)
def test_slices_are_as_large_as_suits_the_compression(text, counts):
    job = TreeJob(run_id="a", workers=WORKERS, topology=read({}, WORKERS, (1, 2, 3)), compression=text)
    assert [unit.count for unit in job.slices.cut("gradient w", 300_000, 4)] == counts
