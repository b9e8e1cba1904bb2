"""What a worker of `wan.py` does, alike with every framework: one model, one loop, one order of images."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from benchmarks.test_wan_systems import TWO_SITES, setting_in
from benchmarks.wan_rig import cnn, mnist, worker
from benchmarks.wan_rig.records import Follower
from benchmarks.wan_rig.systems import SYSTEMS, Setting
from benchmarks.wan_rig.systems.base import PYTHON_ENVIRONMENT
from benchmarks.wan_rig.worker_job import WorkerJob

LOGITS = """
import importlib, sys
from pathlib import Path
import numpy as np
folder, framework = Path(sys.argv[1]), sys.argv[2]
model = importlib.import_module(f"wan_rig.{framework}_cnn")
net = model.build(np.load(folder / "weights.npy"))
np.save(folder / f"{framework}.npy", model.logits(net, np.load(folder / "images.npy")))
"""


def test_a_vector_of_weights_is_the_same_network_in_torch_and_gluon(tmp_path):
    generator = np.random.default_rng(4)
    biases = generator.normal(scale=0.01, size=cnn.NUM_PARAMETERS).astype(np.float32)
    np.save(tmp_path / "weights.npy", cnn.initial_weights(seed=3) + biases)
    np.save(tmp_path / "images.npy", generator.random((8, 1, 28, 28), dtype=np.float32))
    found = {}
    for framework in ("torch", "gluon"):  # each in a process of its own, as the workers are
        command = [sys.executable, "-c", LOGITS, str(tmp_path), framework]
        subprocess.run(command, check=True, env={**os.environ, **PYTHON_ENVIRONMENT}, timeout=100)
        found[framework] = np.load(tmp_path / f"{framework}.npy")
    assert np.abs(found["gluon"]).max() > 0.1
    np.testing.assert_allclose(found["torch"], found["gluon"], rtol=0, atol=1e-5)


class Keeper:
    """A learner that trains nothing, and keeps what it is given."""

    def __init__(self) -> None:
        self.did: list[str] = []
        self.labels: list[list[float]] = []

    def compute(self, batch: mnist.Samples) -> None:
        self.did.append("compute")
        self.labels.append(list(batch.labels))

    def step(self) -> None:
        self.did.append("step")

    def settle(self) -> None:
        self.did.append("settle")

    def snapshot(self) -> tuple[np.ndarray, int]:
        return np.full(2, len(self.labels)), 10 * len(self.labels)


def trained(setting: Setting, name: str) -> dict[str, Keeper]:
    """Runs the loops of a system's workers, by worker, without what joins them."""
    setting.folder.mkdir()
    learners = {}
    for process in SYSTEMS[name].plan(setting):
        if process.finishes:
            job = WorkerJob.read(Path(process.command[-1]))
            learners[process.name] = Keeper()
            worker.train(job, learners[process.name], worker.batches(job))
    return learners


@pytest.fixture
def tiny_images(monkeypatch):
    samples = mnist.Samples(np.zeros((64, 1, 28, 28), np.float32), np.arange(64, dtype=np.float32))
    monkeypatch.setattr(mnist, "read", lambda folder: (samples, samples))


@pytest.mark.parametrize("name", ["mxnet", "torch_ddp", "torch_hfa"])
def test_every_framework_has_the_same_loop(name, tmp_path, tiny_images):
    learners = trained(setting_in(tmp_path / "trial", batch=8, steps=3, every=2), name)
    assert len(learners) == 4
    for learner in learners.values():
        assert learner.did == ["compute", "step", "compute", "step", "settle", "compute", "step"]
    rows = Follower(tmp_path / "trial" / "records" / "site-1").new_rows()
    assert [(row.step, row.engine_bytes) for row in rows] == [(0, 0), (2, 20)]


def test_every_framework_has_the_same_images_in_the_same_order(tmp_path, tiny_images):
    runs = [
        trained(setting_in(tmp_path / name, batch=8, steps=5), name)
        for name in ("mxnet", "fsa", "torch_fsa", "torch_ddp")
    ]
    seen = [{name: learner.labels for name, learner in learners.items()} for learners in runs]
    assert seen == [seen[0]] * 4
    first = [labels[0] for labels in seen[0].values()]
    assert len(set().union(*first)) == 4 * 8


@pytest.mark.parametrize("name", ["joined", "torch_joined"])
def test_one_process_has_the_batches_of_all_workers_in_their_order(name, tmp_path, tiny_images):
    apart = trained(setting_in(tmp_path / "apart", batch=8, steps=5), "mxnet").values()
    (together,) = trained(setting_in(tmp_path / "together", batch=8, steps=5), name).values()
    expected = [np.concatenate(parts) for parts in zip(*(one.labels for one in apart), strict=True)]
    np.testing.assert_array_equal(together.labels, expected)
    assert SYSTEMS[name].recording(TWO_SITES[1:]) == ("site-0",)
