"""The whole training in pods, which are processes here with the pods' own environment."""

import pytest
from geokfp.components._launch.as_processes import run_as_processes
from geokfp.components._launch.launch_step import Surroundings
from geokfp.components.table_training.config import GeoTableConfig
from geokfp.components.table_training.run import run
from support.site_shards import outputs_in, sharded

OPTIONS = {"algorithm": "softmax_regression", "epochs": 4}


@pytest.fixture(scope="module")
def digits(tmp_path_factory):
    return sharded(tmp_path_factory.mktemp("digits"), num_sites=2, seed=3)


@pytest.mark.long
def test_pods_train_the_very_model_of_one_machine(digits, tmp_path):
    here = run(GeoTableConfig(**OPTIONS), digits, outputs_in(tmp_path / "here"))
    config = GeoTableConfig(
        **OPTIONS,
        launcher="job",
        hand_over=str(tmp_path / "hand-over"),
        run_id="run",
        namespace="geo",
        plain_text=True,
    )
    pods = run(config, digits, outputs_in(tmp_path / "pods-out"), Surroundings(run=run_as_processes))
    assert pods.metrics["test_accuracy"] == here.metrics["test_accuracy"]
