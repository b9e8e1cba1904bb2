"""geo_train whose root is killed goes on from its checkpoint, and ends as if nothing had been."""

import dataclasses

import pytest
from geokfp.components._files import InputError
from geokfp.components._launch import ProcessFailed
from geokfp.components.table_training.config import GeoTableConfig
from support.killed_root import GLUON, TORCH
from support.site_shards import sharded
from support.table_trainings import Trainings

# MXNet names what NumPy has deprecated when it is imported.
pytestmark = [pytest.mark.filterwarnings("ignore::DeprecationWarning"), pytest.mark.timeout(240)]

RESTARTS = "geokfp.components.geo_training.attempts.RESTARTS"
PROGRESS = "geokfp.components.geo_training.attempts.progress"
EPOCHS, STEPS_AN_EPOCH = 5, 9
TOP_K = "top_k(ratio=0.05)"


@pytest.fixture(scope="module")
def shards(tmp_path_factory):
    return sharded(tmp_path_factory.mktemp("digits"))


class Training(Trainings):
    """Trainings of which some kill their root in epoch 4."""

    def __init__(self, shards, folder, code, name, **options):
        self._mark = folder / "mark"
        at = {"mark": str(self._mark), "at": 3 * STEPS_AN_EPOCH + 4}
        super().__init__(shards, folder, code, name, at, epochs=EPOCHS, **options)

    def run(self, name, *, killed):
        if killed:
            self._mark.touch()
        return self.train(name)


def test_run_again_it_ends_as_one_run_does(shards, tmp_path, monkeypatch):
    """Each worker's own Adam steps."""
    training = Training(shards, tmp_path, TORCH, "worker_adam", synchronization="fsa", compression=TOP_K)
    straight = training.run("straight", killed=False)
    monkeypatch.setattr(RESTARTS, 0)
    with pytest.raises(ProcessFailed, match=r"^root/aggregator: killed by SIGKILL$"):
        training.run("killed", killed=True)
    said = []
    monkeypatch.setattr(PROGRESS, said.append)
    again = training.run("killed", killed=False)
    assert any(line.startswith("resumes after epoch 3, ") for line in said), said
    training.assert_same("straight", "killed", straight, again)
    assert again["wan_bytes_sent"] > straight["wan_bytes_sent"]  # the first weights travel once more
    left = sorted(path.name for path in (tmp_path / "killed").iterdir())
    assert left == ["model", "predictions", "report.html"]


@pytest.mark.parametrize(
    ("code", "name", "synchronization"),
    [
        (TORCH, "root_adam", "fsa(optimizer=adam(rate=0.01))"),
        pytest.param(GLUON, "gluon", "fsa", marks=pytest.mark.long),
    ],
)
def test_a_killed_root_is_started_again_and_it_ends_as_one_run_does(
    shards, tmp_path, monkeypatch, code, name, synchronization
):
    training = Training(shards, tmp_path, code, name, synchronization=synchronization, compression=TOP_K)
    straight = training.run("straight", killed=False)
    said = []
    monkeypatch.setattr(PROGRESS, said.append)
    healed = training.run("killed", killed=True)
    assert "root/aggregator: killed by SIGKILL: starts again, 1 of at most 2 times" in said
    assert any(line.startswith("resumes after epoch 3, ") for line in said), said
    training.assert_same("straight", "killed", straight, healed)


def test_a_spoiled_checkpoint_and_one_of_other_options_are_not_gone_on_from(shards, tmp_path, monkeypatch):
    kept = tmp_path / "kept"
    training = Training(
        shards, tmp_path, TORCH, "spoiled", checkpoint_folder=str(kept), synchronization="mixed"
    )
    monkeypatch.setattr(RESTARTS, 0)
    with pytest.raises(ProcessFailed):
        training.run("killed", killed=True)
    (folder,) = kept.iterdir()
    assert sorted(path.name for path in folder.iterdir()) == ["answers", "epoch-2", "epoch-3"]
    names = sorted(path.name for path in (folder / "epoch-3").iterdir())
    assert names == ["node-0", "node-1", "root", "worker-0", "worker-1"]
    said = []
    monkeypatch.setattr(PROGRESS, said.append)
    chosen, training.config = training.config, dataclasses.replace(training.config, seed=1)
    with pytest.raises(ProcessFailed):
        training.run("other", killed=True)
    assert said == [f"begins afresh: {kept} holds no whole checkpoint of these options and data"]
    state = folder / "epoch-3" / "root" / "state.safetensors"
    state.write_bytes(state.read_bytes()[:-1] + b"!")
    training.config = chosen
    metrics = training.run("killed", killed=False)
    assert any(line.startswith("resumes after epoch 2, ") for line in said), said
    assert metrics["test_accuracy"] > 0.8  # no site waits for another: no two runs are the same
    assert not folder.exists()


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"checkpoint_folder": "s3://bucket/kept"}, "checkpoint_folder 's3://bucket/kept': must be the path"),
        ({"checkpoint_every": -1}, "checkpoint_every -1: must be at least 0"),
    ],
)
def test_wrong_options_are_refused_by_name(options, reason):
    with pytest.raises(InputError, match=reason):
        GeoTableConfig(algorithm="mlp", **options)


def test_sites_that_do_not_wait_for_each_other_do_so_only_where_a_folder_is_given(tmp_path):
    for text in ("mixed", "esync"):
        assert not GeoTableConfig(algorithm="mlp", synchronization=text).keeps_checkpoints
        config = GeoTableConfig(algorithm="mlp", synchronization=text, checkpoint_folder=str(tmp_path))
        assert config.keeps_checkpoints
    assert GeoTableConfig(algorithm="mlp", synchronization="hfa + outer").keeps_checkpoints
    assert not GeoTableConfig(algorithm="mlp", checkpoint_every=0).keeps_checkpoints
