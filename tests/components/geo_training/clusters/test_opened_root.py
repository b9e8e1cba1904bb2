"""Pods are told where the root is reached when its cluster has said so, before any of them starts."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from geokfp.components._files import InputError
from geokfp.components._launch.cluster import Placed
from geokfp.components._launch.launch_step import Surroundings
from geokfp.components._launch.pods import PodSettings
from geokfp.components.geo_training.clusters.launching import TreeLaunch
from geokfp.components.geo_training.clusters.opened_root import opened_root
from geokfp.components.geo_training.clusters.pod_tree import Groups, in_pods
from geokfp.components.geo_training.config import GeoTrainingConfig
from geokfp.components.geo_training.planned_tree import PlannedTree, plan_tree
from geokfp.components.geo_training.transport.base import Address

OSLO = {"sites": {"oslo": {"cluster": {"kubeconfig": "/oslo", "context": "oslo"}}}}
BALANCED = {**OSLO, "root_pod": {"service": "LoadBalancer"}}


def planned(topology: dict[str, object]) -> tuple[TreeLaunch, PlannedTree]:
    config = GeoTrainingConfig(
        launcher="job", run_id="r", namespace="geo", plain_text=True, topology=topology
    )
    groups = Groups({"oslo": "site-0", "paris": "site-1"})
    tree = plan_tree(config, {"oslo": 1, "paris": 1}, groups, Path(), PodSettings())
    launch = TreeLaunch(
        name="geo-1",
        step="geo_train_gnn",
        options=config,
        timeout_s=9,
        hand_over="s3://b/h",
        image="training",
        target="a.b:c",
    )
    return launch, tree


def test_all_nodes_dial_what_the_cluster_said_and_the_root_listens_in_its_pod() -> None:
    launch, tree = planned(BALANCED)
    asked: list[tuple[str, str, bool]] = []

    @contextmanager
    def open_port(placed: Placed, group: str) -> Iterator[tuple[str, int]]:
        asked.append((placed.launch.name, group, placed.cluster.in_cluster))
        yield "10.0.0.9", 7000
        asked.append(("closed", group, False))

    with opened_root(launch, tree, 1, tree.job, Surroundings(open_port=open_port)) as job:
        far = in_pods(job, {"site-0": ("10.1.0.1",)})
        near = in_pods(job, {"root": ("10.2.0.1",), "site-1": ("10.2.0.2",)})
        assert len(asked) == 1
    assert asked == [("geo-1-1", "root", True), ("closed", "root", False)]
    reached = Address("10.0.0.9", 7000)
    assert [each.topology.root for each in (far, near)] == [reached, reached]
    assert near.topology.bound(reached) == Address("10.2.0.1", 7000)


def test_an_address_that_is_given_is_asked_of_nobody() -> None:
    launch, tree = planned({**BALANCED, "root": "hub.example:443"})
    with opened_root(launch, tree, 0, tree.job, Surroundings()) as job:
        assert job is tree.job


def test_where_pods_are_processes_the_address_must_be_given() -> None:
    launch, tree = planned(BALANCED)
    surroundings = Surroundings(run=lambda placed, **told: None)
    with (
        pytest.raises(InputError, match=r"topology\['root'\]: must be host:port where no cluster"),
        opened_root(launch, tree, 0, tree.job, surroundings),
    ):
        pytest.fail("nothing gives an address")
