"""train_gnn in pods that a cluster double starts: the same training as beside the step."""

import json

import pandas as pd
import pytest
from geokfp.components._launch.launch_step import Surroundings
from geokfp.components.training.config import TrainingConfig
from geokfp.components.training.run import Outputs, run
from support.api_server import ApiServerDouble
from support.launched import refuse_what_schemas_do
from support.pod_processes import on_a_double
from support.real_graphs import communities, partitioned

pytestmark = [
    pytest.mark.long,
    # DGL leaves /proc/self/status open when it partitions.
    pytest.mark.filterwarnings(
        "ignore:.*unclosed file:ResourceWarning",
        "ignore:.*proc.self.status:pytest.PytestUnraisableExceptionWarning",
    ),
]


@pytest.mark.parametrize(("kind", "first_address"), [("job", 40), ("dgljob", 50)])
def test_two_pods_train_the_same_model(tmp_path, kind, first_address):
    partitions = partitioned(communities(), tmp_path / "two", num_parts=2)
    here, there = (
        Outputs(model=folder / "model", predictions=folder / "predictions", report=folder / "report.html")
        for folder in (tmp_path / "here", tmp_path / "there")
    )
    alone = run(TrainingConfig(epochs=3), partitions, here)
    with ApiServerDouble() as server:
        server.checks = [refuse_what_schemas_do]
        resource = tmp_path / "job_resource"
        surroundings = Surroundings(run=on_a_double(server, tmp_path, first_address), job_resource=resource)
        config = TrainingConfig(
            epochs=3, launcher=kind, hand_over=str(tmp_path / "shared"), run_id="r", namespace="n"
        )
        spread = run(config, partitions, there, surroundings)
        assert server.store.everything() == []
    assert spread.metrics["test_accuracy"] == alone.metrics["test_accuracy"]
    tables = [pd.read_parquet(out.predictions / "predictions.parquet") for out in (here, there)]
    pd.testing.assert_frame_equal(*tables)
    assert json.loads(resource.read_text())["namespace"] == "n"
