"""train_gnn in pods, with processes in the place of pods: the same training as beside the step."""

import json
from pathlib import Path

import pandas as pd
import pytest
from geokfp.components._launch.as_processes import run_as_processes
from geokfp.components._launch.launch_step import Surroundings
from geokfp.components.training.config import TrainingConfig
from geokfp.components.training.run import Outputs, run
from support.real_graphs import communities, partitioned

# DGL leaves /proc/self/status open when it partitions.
pytestmark = pytest.mark.filterwarnings(
    "ignore:.*unclosed file:ResourceWarning",
    "ignore:.*proc.self.status:pytest.PytestUnraisableExceptionWarning",
)


def outputs(folder: Path) -> Outputs:
    return Outputs(model=folder / "model", predictions=folder / "predictions", report=folder / "report.html")


def in_pods(folder: Path, **options: object) -> TrainingConfig:
    given = {"launcher": "jobset", "hand_over": str(folder / "shared"), "run_id": "r", "namespace": "n"}
    return TrainingConfig(**{**given, **options})


@pytest.fixture(scope="module")
def partitions(tmp_path_factory):
    return partitioned(communities(), tmp_path_factory.mktemp("two"), num_parts=2)


def test_two_pods_train_the_same_model_as_two_trainers_of_one_host(partitions, tmp_path):
    here, there = outputs(tmp_path / "here"), outputs(tmp_path / "there")
    resource = tmp_path / "job_resource"
    surroundings = Surroundings(run=run_as_processes, job_resource=resource)

    alone = run(TrainingConfig(epochs=3), partitions, here)
    spread = run(in_pods(tmp_path, epochs=3), partitions, there, surroundings)

    for name in ("train_accuracy", "val_accuracy", "test_accuracy", "epochs_run", "best_epoch"):
        assert spread.metrics[name] == alone.metrics[name]
    tables = [pd.read_parquet(out.predictions / "predictions.parquet") for out in (here, there)]
    pd.testing.assert_frame_equal(*tables)
    assert json.loads(resource.read_text())["kind"] == "Processes"
    left = [path for path in (tmp_path / "shared").rglob("*") if path.is_file()]
    assert left == []
