"""The whole training in pods, which are processes here with the pods' own environment."""

import dataclasses
from contextlib import AbstractContextManager

import pandas as pd
import pytest
from geokfp.components._files import Folder, read_manifest
from geokfp.components._launch.as_processes import run_as_processes
from geokfp.components._launch.cluster import Placed
from geokfp.components._launch.launch_step import Surroundings
from geokfp.components._launch.opened import opened_port
from geokfp.components.table_training.config import GeoTableConfig
from geokfp.components.table_training.run import run
from support.api_server import ApiServerDouble
from support.cluster_script import ClusterScript
from support.launched import at, quick, refuse_what_schemas_do
from support.pod_processes import on_a_double
from support.site_shards import outputs_in, sharded

pytestmark = pytest.mark.long
OPTIONS = {"algorithm": "softmax_regression", "epochs": 4}


@pytest.fixture(scope="module")
def digits(tmp_path_factory):
    return sharded(tmp_path_factory.mktemp("digits"), num_sites=2, seed=3)


@pytest.fixture(scope="module")
def here(digits, tmp_path_factory):
    outputs = outputs_in(tmp_path_factory.mktemp("here"))
    return run(GeoTableConfig(**OPTIONS), digits, outputs), outputs


def in_pods(**options):
    return GeoTableConfig(
        **OPTIONS, launcher="job", run_id="run", namespace="geo", plain_text=True, **options
    )


def test_pods_train_the_very_model_of_one_machine(digits, here, tmp_path):
    config = in_pods(hand_over=str(tmp_path / "hand-over"))
    pods = run(config, digits, outputs_in(tmp_path / "pods-out"), Surroundings(run=run_as_processes))
    assert pods.metrics["test_accuracy"] == here[0].metrics["test_accuracy"]


def test_pods_write_predictions_straight_to_the_store(digits, here, tmp_path, bucket):
    outputs = outputs_in(tmp_path / "out")
    uris = {name: f"s3://{bucket}/{name}" for name in ("model", "predictions")}
    pods = run(in_pods(), digits, outputs, Surroundings(run=run_as_processes, uris=uris))
    assert not outputs.predictions.exists()
    assert pods.classes.matrix.tolist() == here[0].classes.matrix.tolist()
    Folder(uris["predictions"]).fetch_artifact(outputs.predictions)
    found = read_manifest(outputs.predictions, kind="geokfp.predictions", version=1)
    tables = [
        pd.read_parquet(each.predictions / "predictions.parquet").sort_values(
            ["site", "row"], ignore_index=True
        )
        for each in (here[1], outputs)
    ]
    pd.testing.assert_frame_equal(*tables)
    assert found["num_rows"] == len(tables[0])
    assert Folder(f"s3://{bucket}").names() == ["predictions"]


def test_a_root_behind_a_balancer_is_reached_where_its_cluster_says(digits, here, tmp_path):
    with ApiServerDouble() as server:
        server.checks = [refuse_what_schemas_do]
        script = ClusterScript(server, "geo")
        script.addresses = ["127.0.77.60"]  # of the root, the first of its pods

        def open_port(placed: Placed, group: str) -> AbstractContextManager[tuple[str, int]]:
            return opened_port(dataclasses.replace(placed, cluster=at(server, tmp_path)), group, quick())

        surroundings = Surroundings(run=on_a_double(server, tmp_path, 60), open_port=open_port)
        config = in_pods(
            hand_over=str(tmp_path / "hand-over"), topology={"root_pod": {"service": "LoadBalancer"}}
        )
        pods = run(config, digits, outputs_in(tmp_path / "out"), surroundings)
        assert server.store.everything() == []
    assert pods.metrics["test_accuracy"] == here[0].metrics["test_accuracy"]
