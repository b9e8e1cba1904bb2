"""Checkpoints: what is kept, what may go on from it, and that going on changes nothing."""

import dataclasses
import json
import shutil
from pathlib import Path

import pytest
import torch
from geokfp.components._files import ArtifactError, InputError
from geokfp.components._files.checkpoints import usable_folder
from geokfp.components._launch import ProcessFailed
from geokfp.components.training.checkpoint import WorkerCheckpoints, last_epoch, training_digest
from geokfp.components.training.config import TrainingConfig
from geokfp.components.training.epochs import EpochRow
from geokfp.components.training.exchange import LocalExchange
from geokfp.components.training.loop import Hooks, fit
from geokfp.components.training.run import Outputs, run
from geokfp.components.training.trained_gnn import ModelSource, read_trained_gnn
from geokfp.components.training.training_state import TrainingState
from support.dying_model import DIES_IN_EPOCH_3
from support.nodes_without_edges import Nodes, config, data, flat, model
from support.real_graphs import communities, partitioned

SOURCE = ModelSource(architecture="sage", num_features=4, num_classes=2, num_layers=2)

# DGL leaves /proc/self/status open when it partitions.
pytestmark = pytest.mark.filterwarnings(
    "ignore:.*unclosed file:ResourceWarning",
    "ignore:.*proc.self.status:pytest.PytestUnraisableExceptionWarning",
)


def outputs(folder):
    return Outputs(model=folder / "model", predictions=folder / "predictions", report=folder / "report.html")


def trained_state(steps=3):
    module = model()
    optimizer = torch.optim.Adam(module.parameters(), lr=0.1)
    for _ in range(steps):
        flat_sum = sum(parameter.pow(2).sum() for parameter in module.parameters())
        optimizer.zero_grad()
        flat_sum.backward()
        optimizer.step()
    rows = [EpochRow(1, train_loss=0.5), EpochRow(2, train_loss=0.25, val_loss=0.1, val_accuracy=1.0)]
    return TrainingState(module, optimizer, rows, {"weight": torch.arange(3.0)})


def fresh_state():
    module = model(seed=9)
    return TrainingState(module, torch.optim.Adam(module.parameters(), lr=0.1))


def test_a_state_comes_back_as_it_was(tmp_path):
    before, after = trained_state(), fresh_state()
    before.write(tmp_path / "state")
    after.read(tmp_path / "state")
    assert torch.equal(flat(after.model), flat(before.model))
    assert repr(after.history) == repr(before.history)
    assert after.best_weights.keys() == before.best_weights.keys()
    assert torch.equal(after.best_weights["weight"], before.best_weights["weight"])
    kept, given = before.optimizer.state_dict(), after.optimizer.state_dict()
    assert given["param_groups"] == kept["param_groups"]
    for index, values in kept["state"].items():
        assert given["state"][index].keys() == values.keys()
        assert all(torch.equal(given["state"][index][name], values[name]) for name in values)


@pytest.mark.parametrize("spoil", [lambda data: data[:-9], lambda data: b"", lambda data: b"\xff" * 64])
def test_a_spoiled_file_is_refused(tmp_path, spoil):
    path = tmp_path / "state"
    trained_state().write(path)
    path.write_bytes(spoil(path.read_bytes()))
    with pytest.raises(ArtifactError, match="not the state of this training"):
        fresh_state().read(path)


def test_the_state_of_another_model_is_refused(tmp_path):
    trained_state().write(tmp_path / "state")
    other = torch.nn.Linear(6, 2)
    with pytest.raises(ArtifactError, match="not the state of this training"):
        TrainingState(other, torch.optim.Adam(other.parameters())).read(tmp_path / "state")


def test_only_an_epoch_that_all_workers_have_written_counts(tmp_path):
    workers = [WorkerCheckpoints(tmp_path, worker, 0) for worker in range(2)]
    state = trained_state()
    assert last_epoch(tmp_path, 2) == 0
    workers[0].save(state)
    assert last_epoch(tmp_path, 2) == 0
    workers[1].save(state)
    assert last_epoch(tmp_path, 2) == 2
    for number in (3, 4):
        state.history.append(EpochRow(number))
        assert last_epoch(tmp_path, 2) == number - 1
        workers[1].save(state)
        assert last_epoch(tmp_path, 2) == number - 1
        workers[0].save(state)
        assert last_epoch(tmp_path, 2) == number
    assert sorted(path.name for path in tmp_path.iterdir()) == ["epoch-3", "epoch-4"]


@pytest.mark.parametrize("stop_after", [1, 2, 3, 6])
def test_a_resumed_fit_takes_the_very_same_steps(tmp_path, stop_after):
    features, labels = data(60)
    chosen = config(epochs=6, dropout=0.3, eval_every=2)

    class StopError(Exception):
        pass

    def stop(row):
        if row.epoch == stop_after:
            raise StopError

    def train(checkpoints, hooks=None):
        nodes, module = Nodes(features, labels, 16, validation=(0, 20)), model(dropout=0.3)
        return fit(nodes, module, chosen, LocalExchange(), hooks, checkpoints), flat(module)

    straight, weights = train(None)
    with pytest.raises(StopError):
        train(WorkerCheckpoints(tmp_path, 0, 0), Hooks(on_epoch=stop))
    assert last_epoch(tmp_path, 1) == stop_after
    resumed, again = train(WorkerCheckpoints(tmp_path, 0, stop_after))
    assert torch.equal(again, weights)
    assert resumed.best_epoch == straight.best_epoch
    assert [timeless(row) for row in resumed.history] == [timeless(row) for row in straight.history]


def timeless(row):
    return repr(dataclasses.replace(row, seconds=0.0))


@pytest.mark.parametrize("change", [{"epochs": 9}, {"seed": 1}, {"model_options": {"input_dropout": 0.1}}])
def test_other_options_are_another_training(tmp_path, change):
    write_manifest(tmp_path)
    digest = training_digest(TrainingConfig(), SOURCE, tmp_path)
    assert training_digest(TrainingConfig(**change), SOURCE, tmp_path) != digest
    assert training_digest(TrainingConfig(timeout_s=5, num_samplers=2), SOURCE, tmp_path) == digest


def test_other_partitions_or_code_are_another_training(tmp_path):
    partitions, code = tmp_path / "partitions", tmp_path / "code"
    for folder in (partitions, code):
        folder.mkdir()
    write_manifest(partitions)
    (code / "own.py").write_text("one = 1\n", encoding="utf-8")
    source = dataclasses.replace(SOURCE, user_code=code)
    digests = {training_digest(TrainingConfig(), source, partitions)}
    (code / "own.py").write_text("one = 2\n", encoding="utf-8")
    digests.add(training_digest(TrainingConfig(), source, partitions))
    write_manifest(partitions, rows="2")
    digests.add(training_digest(TrainingConfig(), source, partitions))
    assert len(digests) == 3


def test_partitions_that_were_written_again_are_the_same(tmp_path):
    graph = communities()
    first, again = (partitioned(graph, tmp_path / name, num_parts=2) for name in ("first", "again"))
    assert training_digest(TrainingConfig(), SOURCE, first) == training_digest(
        TrainingConfig(), SOURCE, again
    )


def write_manifest(folder, rows="1"):
    files = {"site-0/node_rows.npy": rows, "site-0/part-0/graph.dgl": str(folder)}
    (folder / "manifest.json").write_text(json.dumps({"files": files}), encoding="utf-8")


@pytest.mark.parametrize("spoil", ["altered", "cut", "of another epoch", "missing"])
def test_an_epoch_that_is_spoiled_does_not_count(tmp_path, spoil):
    worker, state = WorkerCheckpoints(tmp_path, 0, 0), trained_state()
    worker.save(state)
    state.history.append(EpochRow(3))
    worker.save(state)
    assert last_epoch(tmp_path, 1) == 3
    folder = tmp_path / "epoch-3" / "worker-0"
    written = (folder / "state.safetensors").read_bytes()
    if spoil == "altered":
        (folder / "state.safetensors").write_bytes(written[:-1] + bytes([written[-1] ^ 1]))
    elif spoil == "cut":
        (folder / "state.safetensors").write_bytes(written[:-1])
    elif spoil == "missing":
        (folder / "manifest.json").unlink()
    else:
        shutil.rmtree(folder)
        shutil.copytree(tmp_path / "epoch-2" / "worker-0", folder)
    assert last_epoch(tmp_path, 1) == 2


@pytest.mark.parametrize("folder", ["s3://bucket/kept", "taken/kept"])
def test_a_folder_that_cannot_be_used_is_refused_by_name(tmp_path, folder, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "taken").write_text("a file", encoding="utf-8")
    with pytest.raises(InputError, match=r"^checkpoint_folder '.*kept': (must be|Not a directory; must be)"):
        usable_folder(Path(TrainingConfig(checkpoint_folder=folder).checkpoint_folder))


@pytest.mark.parametrize(
    ("num_parts", "own_folder"), [(2, False), pytest.param(4, True, marks=pytest.mark.long)]
)
def test_killed_in_epoch_3_and_run_again_it_gives_the_metrics_of_one_run(
    tmp_path, monkeypatch, num_parts, own_folder
):
    partitions = partitioned(communities(num_nodes=800), tmp_path, num_parts=num_parts)
    mark, code = tmp_path / "mark", tmp_path / "dies_of_test.py"
    code.write_text(DIES_IN_EPOCH_3, encoding="utf-8")
    chosen = TrainingConfig(
        entry_point="dies_of_test:build",
        user_code=str(code),
        model_options={"mark": str(mark)},
        epochs=6,
        fan_outs=[3, 3],
        batch_size=-(-90 // num_parts // 3),
        checkpoint_folder=str(tmp_path / "kept") if own_folder else "",
    )
    straight = run(dataclasses.replace(chosen, checkpoint_folder=""), partitions, outputs(tmp_path / "a"))
    mark.touch()
    with pytest.raises(ProcessFailed, match="killed by SIGKILL"):
        run(chosen, partitions, outputs(tmp_path / "b"))
    said = []
    monkeypatch.setattr("geokfp.components.training.run.progress", said.append)
    again = tmp_path / ("c" if own_folder else "b")
    resumed = run(chosen, partitions, outputs(again))
    assert any(line.startswith("resumes after epoch 2") for line in said)
    for name, value in straight.metrics.items():
        if name != "seconds_per_epoch":
            assert resumed.metrics[name] == pytest.approx(value, abs=1e-6), name
    histories = [read_trained_gnn(folder / "model").history for folder in (tmp_path / "a", again)]
    for one, two in zip(*histories, strict=True):
        assert {**one, "seconds": 0} == pytest.approx({**two, "seconds": 0}, abs=1e-6)
    assert not list(tmp_path.rglob("epoch-*"))
