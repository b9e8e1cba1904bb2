"""The built-in pipelines run on the built-in graph, and each component alone on artifacts of a run."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from geokfp import components
from kfp import dsl
from kfp.compiler import Compiler
from support.real_graphs import load
from support.site_tables import site_tables

COMMAND = [sys.executable, "-m", "geokfp.pipelines._command_line"]
QUICK = ["-p", "epochs=40", "-p", "hidden_size=16"]
PATIENT = pytest.mark.timeout(
    300
)  # whole pipelines: half a minute of CPU, more where others share the machine


def geokfp(*arguments: object, folder: Path) -> None:
    done = subprocess.run(
        [*COMMAND, *map(str, arguments)], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr + done.stdout


@pytest.fixture(scope="module")
def single_site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("single")
    geokfp("run", "single_site", "-o", "out", *QUICK, folder=folder)
    return folder / "out"


def metrics(out: Path) -> dict[str, float]:
    return json.loads((out / "metrics.json").read_text(encoding="utf-8"))


def check_results(out: Path) -> None:
    got = metrics(out)
    assert got["num_nodes"] == 1797
    assert got["num_edges"] > 1797
    assert 0 < got["edge_cut_fraction"] < 1
    assert got["test_accuracy"] > 0.8
    assert got["val_accuracy"] > 0.8
    assert got["max_abs_difference"] <= 1e-4
    assert "<html" in (out / "report.html").read_text(encoding="utf-8").lower()
    assert any((out / "model").iterdir())


@PATIENT
def test_single_site_runs(single_site: Path) -> None:
    check_results(single_site)
    artifacts = {entry.name: set(os.listdir(entry)) for entry in (single_site / "steps").iterdir()}
    assert artifacts["ingest_graph"] >= {"graph", "report", "fingerprint"}
    assert artifacts["partition_graph"] >= {"partitions", "report"}
    assert artifacts["train_gnn"] >= {"model", "predictions", "report"}
    assert artifacts["export_model"] >= {"exported", "report"}


@PATIENT
@pytest.mark.long
def test_cross_site_runs(tmp_path: Path) -> None:
    geokfp("run", "cross_site", "-o", "out", *QUICK, "-p", "compare_alone=false", folder=tmp_path)
    check_results(tmp_path / "out")


@PATIENT
def test_warm_start_runs_and_begins_where_the_first_site_ended(tmp_path: Path) -> None:
    quick = [*QUICK, "-p", "warm_start_epochs=10", "-p", "compare_alone=false"]
    geokfp("run", "warm_start_cross_site", "-o", "out", *quick, folder=tmp_path)
    check_results(tmp_path / "out")
    assert "train_gnn.test_accuracy" in metrics(tmp_path / "out")
    assert "geo_train_gnn.test_accuracy" in metrics(tmp_path / "out")


@PATIENT
def test_cross_site_table_runs_without_any_input(tmp_path: Path) -> None:
    geokfp("run", "cross_site_table", "-o", "out", "-p", "eval_every=20", folder=tmp_path)
    out = tmp_path / "out"
    got = metrics(out)
    assert (got["num_rows"], got["num_sites"], got["num_classes"]) == (1797, 2, 10)
    assert got["test_accuracy"] > 0.9
    assert got["wan_bytes_sent"] > 0
    assert got["max_abs_difference"] <= 1e-4
    assert (out / "model" / "model.onnx").is_file()
    artifacts = {entry.name: set(os.listdir(entry)) for entry in (out / "steps").iterdir()}
    assert artifacts["shard_table"] >= {"shards", "report", "fingerprint"}
    assert artifacts["geo_train"] >= {"model", "predictions", "report"}
    assert artifacts["export_model"] >= {"exported", "report"}


@PATIENT
@pytest.mark.long
def test_cross_site_at_sites_runs_on_tables_of_two_sites(tmp_path: Path) -> None:
    tables = site_tables(load("cora"), tmp_path / "tables", ("oslo", "paris"))
    stores = {name: str(tmp_path / "stores" / name) for name in tables}
    topology = {"sites": {name: {"storage": store} for name, store in stores.items()}}
    given = {"tables": tables, "topology": topology, "workers_per_site": 1}
    (tmp_path / "given.yaml").write_text(json.dumps(given), encoding="utf-8")
    words = ["--params-file", "given.yaml", "-p", "epochs=20", "-p", "compare_alone=false"]
    geokfp("run", "cross_site_at_sites", "-o", "out", *words, folder=tmp_path)
    out = tmp_path / "out"
    got = metrics(out)
    assert (got["num_nodes"], got["num_sites"], got["num_classes"]) == (2708, 2, 7)
    assert got["test_accuracy"] > 0.77
    assert got["max_abs_difference"] <= 1e-4
    partitions = out / "steps" / "partition_at_sites" / "partitions"
    assert [path.name for path in partitions.iterdir()] == ["manifest.json"]
    kept = json.loads((out / "steps/geo_train_gnn/predictions/sites.json").read_text(encoding="utf-8"))
    for name, store in stores.items():
        assert kept[name].startswith(store)
        assert (Path(kept[name]) / "part-0" / "predictions.parquet").is_file()
    assert "Compared on nodes drawn at random" in (out / "report.html").read_text(encoding="utf-8")


def test_a_wrong_option_is_named_with_its_step(tmp_path: Path) -> None:
    done = subprocess.run(
        [*COMMAND, "run", "single_site", "-o", "out", "-p", "nodes=absent.csv", "-p", "edges=absent.csv"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.startswith("geokfp: ingest_graph failed: absent.csv: no such file")
    assert done.stderr.count("\n") == 1


ALONE: dict[str, tuple[dict[str, str], dict[str, Any]]] = {
    "ingest_graph": ({}, {}),
    "partition_graph": ({"graph": "ingest_graph/graph"}, {"num_parts": 2}),
    "train_gnn": ({"partitions": "partition_graph/partitions"}, {"epochs": 2}),
    "geo_train_gnn": ({"partitions": "partition_graph/partitions"}, {"epochs": 2}),
    "export_model": ({"model": "train_gnn/model", "data": "partition_graph/partitions"}, {}),
}

SLOW = {"train_gnn", "geo_train_gnn", "export_model"}


@PATIENT
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.long] if name in SLOW else []) for name in ALONE]
)
def test_a_component_runs_alone_fed_by_importers(name: str, single_site: Path, tmp_path: Path) -> None:
    inputs, values = ALONE[name]
    component = getattr(components, name)

    @dsl.pipeline(name="alone")
    def alone():
        artifacts = {
            key: dsl.importer(
                artifact_uri=str(single_site / "steps" / path),
                artifact_class=dsl.Model if key == "model" else dsl.Dataset,
            ).output
            for key, path in inputs.items()
        }
        component(**artifacts, **values)

    Compiler().compile(alone, str(tmp_path / "alone.yaml"))
    geokfp("run", "alone.yaml", "-o", "out", folder=tmp_path)
    assert metrics(tmp_path / "out")
