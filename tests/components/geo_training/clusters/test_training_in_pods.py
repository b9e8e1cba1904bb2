"""The whole training in pods, which are processes here with the pods' own environment."""

import json

import pandas as pd
import pytest
from geokfp.components._files import Folder, read_manifest
from geokfp.components._launch.as_processes import run_as_processes
from geokfp.components._launch.launch_step import Surroundings
from geokfp.components.geo_training.config import GeoTrainingConfig
from geokfp.components.geo_training.run import Outputs, run
from geokfp.components.partition.partitions import read_partitions
from support.real_graphs import communities, partitioned

# DGL leaves files open while it writes parts.
pytestmark = pytest.mark.filterwarnings("ignore:.*unclosed file:ResourceWarning")


def in_pods(**options):
    return GeoTrainingConfig(
        epochs=4,
        hidden_size=8,
        batch_size=16,
        learning_rate=0.05,
        launcher="jobset",
        run_id="run",
        namespace="geo",
        plain_text=True,
        **options,
    )


def outputs_in(folder):
    return Outputs(model=folder / "model", predictions=folder / "predictions", report=folder / "report.html")


@pytest.mark.long
def test_pods_of_all_sites_write_predictions_straight_to_the_store(tmp_path, bucket):
    graph = communities(120, num_train=48)
    partitions = partitioned(graph, tmp_path / "partitions", num_sites=2, num_parts=1)
    uris = {name: f"s3://{bucket}/{name}" for name in ("partitions", "model", "predictions")}
    Folder(uris["partitions"]).put_artifact(partitions)
    outputs = outputs_in(tmp_path / "out")
    result = run(in_pods(), partitions, None, outputs, Surroundings(run=run_as_processes, uris=uris))
    assert not outputs.predictions.exists()
    Folder(uris["predictions"]).fetch_artifact(outputs.predictions)
    manifest = read_manifest(outputs.predictions, kind="geokfp.predictions", version=1)
    assert len(manifest["files"]) == 2
    table = pd.read_parquet(outputs.predictions / "predictions.parquet")
    assert sorted(table["id"]) == sorted(graph.node_ids)
    assert list(table["site"].drop_duplicates()) == [site.name for site in read_partitions(partitions).sites]
    test = table[table["split"] == "test"]
    assert (test["label"] == test["predicted"]).mean() == pytest.approx(result.metrics["test_accuracy"])
    assert Folder(f"s3://{bucket}").names() == ["partitions", "predictions"]


def test_each_machine_of_each_site_is_a_pod(tmp_path):
    graph = communities(120, num_train=48)
    partitions = partitioned(graph, tmp_path / "partitions", num_sites=2, num_parts=1)
    outputs = outputs_in(tmp_path)
    config = in_pods(hand_over=str(tmp_path / "hand-over"))
    resource = tmp_path / "job-resource"
    result = run(config, partitions, None, outputs, Surroundings(run=run_as_processes, job_resource=resource))
    assert result.metrics["epochs_run"] == 4
    assert result.metrics["wan_bytes_sent"] > 0
    table = pd.read_parquet(outputs.predictions / "predictions.parquet")
    assert sorted(table["id"]) == sorted(graph.node_ids)
    test = table[table["split"] == "test"]
    assert (test["label"] == test["predicted"]).mean() == pytest.approx(result.metrics["test_accuracy"])
    assert json.loads(resource.read_text())["name"].startswith("geo-train-gnn-")
    assert list((tmp_path / "hand-over").iterdir()) == []
    assert not (tmp_path / "model-work").exists()
