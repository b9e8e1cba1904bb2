"""geo_train when one of its processes is killed, or the user's code fails in mid-training."""

import numpy as np
import pytest
from geokfp.components._launch import ProcessFailed
from geokfp.components.table_training.config import GeoTableConfig
from geokfp.components.table_training.run import run
from support.faults import JOB_ENDS_WITHIN_S, KillAtEpoch, wait_until
from support.site_shards import arrays, outputs_in, sharded

PRINT_PROGRESS = "geokfp.components._launch.local.print_progress"
RESTARTS = "geokfp.components.geo_training.attempts.RESTARTS"


@pytest.fixture(scope="module")
def shards(tmp_path_factory):
    return sharded(tmp_path_factory.mktemp("digits"))


@pytest.mark.parametrize("victim", ["site-1/trainer-0", "site-0/aggregator", "root/aggregator"])
def test_a_killed_process_ends_the_step_with_its_name(shards, tmp_path, monkeypatch, victim):
    kill = KillAtEpoch(lambda step: step.replica(victim))
    monkeypatch.setattr(PRINT_PROGRESS, kill)
    monkeypatch.setattr(RESTARTS, 0)
    config = GeoTableConfig(algorithm="softmax_regression", epochs=100_000, checkpoint_every=0)
    with pytest.raises(ProcessFailed, match=f"^{victim}: killed by SIGKILL$"):
        run(config, shards, outputs_in(tmp_path))
    assert kill.processes is not None
    wait_until(lambda: not kill.processes.alive(), "all processes to end", JOB_ENDS_WITHIN_S)
    assert not (tmp_path / "model").exists()
    assert (tmp_path / "model-work" / "logs" / f"{victim.replace('/', '.')}.log").is_file()


def test_a_training_that_diverges_ends_the_step_with_what_may_help(tmp_path):
    x = np.random.default_rng(0).normal(size=(80, 2)).astype(np.float32)
    shards = sharded(tmp_path / "in", table=arrays(tmp_path, x, x.sum(axis=1)), task="regression")
    config = GeoTableConfig(algorithm="mlp", hyperparameters={"learning_rate": 1e30}, epochs=3)
    with pytest.raises(ProcessFailed, match=r"^site-\d/trainer-0: .*not finite; a smaller learning rate may"):
        run(config, shards, outputs_in(tmp_path))


def test_code_that_fails_in_mid_training_ends_the_step_with_its_words(shards, tmp_path):
    code = tmp_path / "spoiled_loss_of_test.py"
    code.write_text(
        "import torch\nfrom torch import nn\n\n\n"
        "class Loss(nn.CrossEntropyLoss):\n"
        "    calls = 0\n\n"
        "    def forward(self, outputs, labels):\n"
        "        Loss.calls += 1\n"
        "        if Loss.calls > 9:\n"
        "            raise ArithmeticError('no loss today')\n"
        "        return super().forward(outputs, labels)\n\n\n"
        "def build(feature_shape, num_classes):\n"
        "    model = nn.Linear(feature_shape[0], num_classes)\n"
        "    return model, Loss(), torch.optim.SGD(model.parameters(), lr=0.1)\n"
    )
    config = GeoTableConfig(entry_point="spoiled_loss_of_test:build", user_code=str(code))
    with pytest.raises(ProcessFailed, match=r"^site-\d/trainer-0: ArithmeticError: no loss today$"):
        run(config, shards, outputs_in(tmp_path))
