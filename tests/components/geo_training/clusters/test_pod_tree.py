"""Which processes each pod of a tree holds, and at which addresses they are."""

import pytest
from geokfp.components._files import InputError
from geokfp.components.geo_training.clusters.pod_tree import (
    Groups,
    in_pods,
    members_in,
    ports_of,
    topology_of_groups,
)
from geokfp.components.geo_training.tree_job import TreeJob

WORKERS = {"Oslo (north)": 2, "Paris": 1}
GROUPS = Groups({"Oslo (north)": "site-0", "Paris": "site-1"})
ADDRESSES = {"root": ("10.0.0.1",), "site-0": ("10.0.1.1", "10.0.1.2"), "site-1": ("10.0.2.1",)}


def tree(options: dict | None = None, *, apart: bool = False, **choices) -> TreeJob:
    topology = topology_of_groups(options or {}, WORKERS, GROUPS, apart=apart)
    return TreeJob(run_id="run", workers=WORKERS, topology=topology, plain_text=True, **choices)


def test_on_one_cluster_all_are_reached_at_their_pods():
    placed = in_pods(tree(), ADDRESSES)
    assert placed.topology.to_dict() == {
        "root": "10.0.0.1:7000",
        "sites": {
            "Oslo (north)": {"listens": "10.0.1.1:7300", "accepts": "10.0.1.1:7400"},
            "Paris": {"listens": "10.0.2.1:7300", "accepts": "10.0.2.1:7400"},
        },
    }
    assert TreeJob.from_dict(placed.to_dict()) == placed


def test_in_a_cluster_of_its_own_a_site_dials_the_open_address_and_knows_only_its_own_pods():
    options = {"root": "hub.example:443", "sites": {"Paris": {"accepts": "paris.example:30400"}}}
    whole = tree(options, apart=True)
    at_root = in_pods(whole, {"root": ("10.0.0.1",)})
    assert str(at_root.address("root")) == "hub.example:443"
    assert str(at_root.bound("root")) == "10.0.0.1:7000"
    paris = in_pods(whole, {"site-1": ("10.0.2.1",)})
    assert str(paris.address("root")) == "hub.example:443"
    accepts = paris.topology.site("Paris").accepts
    assert (str(accepts), str(paris.topology.bound(accepts))) == ("paris.example:30400", "10.0.2.1:7400")
    oslo = in_pods(whole, {"site-0": ADDRESSES["site-0"]})
    assert oslo.topology.site("Oslo (north)").accepts is None
    assert str(oslo.bound("Oslo (north)")) == "10.0.1.1:7300"


def test_a_sites_first_pod_holds_its_aggregator_too():
    whole = tree()
    assert members_in(whole, GROUPS, "root", 0) == {"root"}
    assert members_in(whole, GROUPS, "site-0", 0) == {"Oslo (north)", "Oslo (north)/trainer-0"}
    assert members_in(whole, GROUPS, "site-0", 1) == {"Oslo (north)/trainer-1"}
    assert ports_of(whole, members_in(whole, GROUPS, "root", 0)) == {"root": 7000}
    assert ports_of(whole, members_in(whole, GROUPS, "site-0", 0)) == {"workers": 7300, "sites": 7400}
    assert ports_of(whole, members_in(whole, GROUPS, "site-0", 1)) == {}


def test_several_roots_are_in_one_pod_or_at_sites():
    beside = tree(transmission="fifo + multigps(shards=3, at=root)")
    roots = members_in(beside, GROUPS, "root", 0)
    assert roots == {"root", "root-1", "root-2"}
    assert ports_of(beside, roots) == {"root": 7000, "root-1": 7001, "root-2": 7002}
    assert [str(root.binds) for root in in_pods(beside, ADDRESSES).roots] == [
        f"10.0.0.1:{port}" for port in (7000, 7001, 7002)
    ]
    at_sites = tree(transmission="fifo + multigps(shards=2, at=sites)")
    assert members_in(at_sites, GROUPS, "root", 0) == {"root"}
    assert "root-1" in members_in(at_sites, GROUPS, "site-0", 0)
    assert str(in_pods(at_sites, ADDRESSES).roots[1].binds) == "10.0.1.1:7400"


def test_every_process_of_a_tree_is_in_one_pod():
    whole = tree(transmission="fifo + multigps(shards=2, at=sites)")
    pods = [("root", 0), ("site-0", 0), ("site-0", 1), ("site-1", 0)]
    held = [name for pod in pods for name in members_in(whole, GROUPS, *pod)]
    assert sorted(held) == sorted([*(root.name for root in whole.roots), *WORKERS, *whole.topology.workers])


def test_groups_that_would_be_one_are_refused():
    with pytest.raises(InputError, match=r"groups of pods are \['root', 'root'\], allowed: unlike names"):
        Groups({"Oslo": "root"})
