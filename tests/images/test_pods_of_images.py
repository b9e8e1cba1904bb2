"""Runs what steps start on a cluster inside the built images: the pods' own commands, variables and mounts.

The cluster's API server is a double; its node runs pods as containers that are not root and write to nothing
but the volumes that their objects name.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from geokfp.pipelines import compiled_package
from support.container_images import BuiltImages
from support.container_node import ContainerNode, EncryptedDouble, open_to_all
from support.graphs import communities
from support.launched import refuse_what_schemas_do
from support.pod_steps import STORE, PodSteps

pytestmark = [pytest.mark.long, pytest.mark.timeout(1800)]
SHARED = {"name": "shared", "persistentVolumeClaim": {"claimName": "geokfp-data"}}
SCRATCH = {"name": "scratch", "emptyDir": {}}
VOLUMES = {
    "volumes": [SHARED, SCRATCH],
    "volumeMounts": [{"name": "shared", "mountPath": "/shared"}, {"name": "scratch", "mountPath": "/tmp"}],
}
LAUNCHED = {"launcher": "job", "hand_over": "/shared/hand-over"}


@contextmanager
def node_of(
    images: BuiltImages, folder: Path, claims: Mapping[str, Path], settings: Mapping[str, Any]
) -> Iterator[ContainerNode]:
    """Yields the node of a cluster with these claims, and one that all steps and pods share."""
    shared = open_to_all(folder / "shared")
    (folder / "node").mkdir()
    with EncryptedDouble(folder / "cluster") as server:
        server.checks = [refuse_what_schemas_do]
        node = ContainerNode(
            images, server, folder / "node", {"geokfp-data": shared, **claims}, settings=settings
        )
        with node.running():
            yield node
        left = [
            document["kind"]
            for document in server.store.everything()
            if "ownerReferences" in document["metadata"]
        ]
        assert left == []
    assert [path for path in shared.rglob("*") if path.is_file()] == []


def run_pipeline(
    node: ContainerNode, package: Path, arguments: Mapping[str, Any], data: Path, folder: Path
) -> PodSteps:
    folder.mkdir()
    run = partial(node.run_step, data=data)
    steps = PodSteps(
        package=package,
        arguments=arguments,
        folder=folder,
        run=run,
        task_config=node.settings,
        root=f"{STORE}/artifacts",  # else pods would read and write the object store themselves
    )
    steps.run_all()
    return steps


def test_two_pods_train_a_gnn_and_it_is_exported(built: BuiltImages, data: Path, tmp_path: Path) -> None:
    arguments = {
        "nodes": "/data/nodes.csv",
        "edges": "/data/edges.csv",
        "epochs": 3,
        "num_parts": 2,
        **LAUNCHED,
    }
    with node_of(built, tmp_path, {}, VOLUMES) as node:
        steps = run_pipeline(node, compiled_package("single_site"), arguments, data, tmp_path / "run")
    assert set(node.ended.values()) == {0}
    assert set(node.ended) >= {"train_gnn: worker/0", "train_gnn: worker/1"}
    assert json.loads(steps.parameters["train-gnn", "job_resource"])["kind"] == "Job"
    assert "model.onnx" in {path.name for path in steps.path("export-model", "exported").rglob("*")}


def test_pods_of_two_sites_and_a_root_train_on_rows(built: BuiltImages, data: Path, tmp_path: Path) -> None:
    arguments = {"table": "/data/nodes.csv", "epochs": 2, "num_sites": 2, "plain_text": True, **LAUNCHED}
    with node_of(built, tmp_path, {}, VOLUMES) as node:
        steps = run_pipeline(node, compiled_package("cross_site_table"), arguments, data, tmp_path / "run")
    assert set(node.ended) >= {"geo_train: root/0", "geo_train: site-0/0", "geo_train: site-1/0"}
    assert set(node.ended.values()) == {0}
    assert "model.onnx" in {path.name for path in steps.path("export-model", "exported").rglob("*")}


def store(folder: Path, site: str, seed: int) -> Path:
    """Writes a site's tables to a volume of its own."""
    graph = communities(60, seed=seed)
    features = {f"x{column}": graph.features[:, column] for column in range(graph.features.shape[1])}
    ids = [f"{site}-{index}" for index in range(graph.num_nodes)]
    nodes = pd.DataFrame({"id": ids, "label": graph.labels, **features})
    source, destination = ([ids[row] for row in end] for end in graph.edges)
    path = open_to_all(folder / site)
    nodes.to_csv(path / "nodes.csv", index=False)
    pd.DataFrame({"src": source, "dst": destination}).to_csv(path / "edges.csv", index=False)
    return path


def test_sites_partition_in_pods_that_see_their_own_store_alone(
    built: BuiltImages, data: Path, tmp_path: Path
) -> None:
    stores = {site: store(tmp_path, site, seed) for seed, site in enumerate(("oslo", "paris"))}
    of_sites = {
        site: {
            "storage": "/store",
            "volumes": [SHARED, SCRATCH, {"name": "store", "persistentVolumeClaim": {"claimName": site}}],
            "volume_mounts": [*VOLUMES["volumeMounts"], {"name": "store", "mountPath": "/store"}],
        }
        for site in stores
    }
    tables = {site: {"nodes": "/store/nodes.csv", "edges": "/store/edges.csv"} for site in stores}
    arguments = {
        "tables": tables,
        "topology": {"sites": of_sites},
        "workers_per_site": 1,
        "epochs": 2,
        "compare_alone": False,
        "plain_text": True,
        **LAUNCHED,
    }
    package = compiled_package("cross_site_at_sites")
    with node_of(built, tmp_path, stores, VOLUMES) as node:
        steps = run_pipeline(node, package, arguments, data, tmp_path / "run")
    assert set(node.ended.values()) == {0}
    pods = {
        f"{step}: {pod}"
        for step in ("partition_at_sites", "geo_train_gnn")
        for pod in ("site-0/0", "site-1/0")
    }
    assert set(node.ended) == {*pods, "geo_train_gnn: root/0"}
    assert steps.artifacts["partition-at-sites", "metrics"]["metadata"]["num_nodes"] == 120
    assert "model.onnx" in {path.name for path in steps.path("export-model", "exported").rglob("*")}
    for site, path in stores.items():
        (table,) = path.rglob("predictions.parquet")
        assert set(pd.read_parquet(table)["id"]) == {f"{site}-{index}" for index in range(60)}
