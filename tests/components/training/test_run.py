"""train_gnn's engine with real DGL servers and trainers on small graphs."""

import sys

import numpy as np
import pandas as pd
import pytest
import torch
from geokfp.components._files import InputError
from geokfp.components._launch import ProcessFailed
from geokfp.components.training import models
from geokfp.components.training.config import TrainingConfig
from geokfp.components.training.run import Outputs, run
from geokfp.components.training.trained_gnn import ModelSource, read_trained_gnn, write_trained_gnn
from support.real_graphs import communities, partitioned

# DGL leaves /proc/self/status open when it partitions.
pytestmark = pytest.mark.filterwarnings(
    "ignore:.*unclosed file:ResourceWarning",
    "ignore:.*proc.self.status:pytest.PytestUnraisableExceptionWarning",
)


def outputs(folder):
    return Outputs(model=folder / "model", predictions=folder / "predictions", report=folder / "report.html")


@pytest.fixture(scope="module")
def graph():
    return communities()


@pytest.fixture(scope="module")
def partitions(graph, tmp_path_factory):
    return partitioned(graph, tmp_path_factory.mktemp("two"), num_parts=2)


def plain_accuracy(graph, trained, split):
    features, edges = torch.tensor(graph.dense_features()), torch.tensor(graph.edges)
    logits = models.plain(trained.build())(features, edges).detach().numpy()
    chosen = graph.split == split
    return logits, float((logits.argmax(1) == graph.labels)[chosen].mean())


@pytest.mark.parametrize("architecture", ["gcn", "sage", pytest.param("gat", marks=pytest.mark.long)])
def test_outcome_equals_the_unpartitioned_forward_pass(architecture, graph, partitions, tmp_path):
    out = outputs(tmp_path)
    result = run(TrainingConfig(architecture=architecture, epochs=8), partitions, out)
    trained = read_trained_gnn(out.model)
    logits, accuracy = plain_accuracy(graph, trained, 3)
    assert result.metrics["test_accuracy"] == pytest.approx(accuracy)
    assert result.metrics["epochs_run"] == len(trained.history) == 8
    table = pd.read_parquet(out.predictions / "predictions.parquet").set_index("id").loc[graph.node_ids]
    names = np.array(graph.label_names)
    assert (table["predicted"] == names[logits.argmax(1)]).all()
    assert (table["label"] == names[graph.labels]).all()
    share = torch.softmax(torch.tensor(logits), 1).max(1).values.numpy()
    assert np.allclose(table["probability"], share, atol=1e-5)
    assert result.confusion.sum() == (graph.split == 3).sum()
    assert np.isfinite(result.roc.threshold).all()
    assert "</svg>" in out.report.read_text("utf-8")
    assert not list(tmp_path.glob("*-work"))


def test_uneven_training_nodes_and_samplers_do_not_hang(tmp_path):
    graph = communities(seed=1)
    # Training nodes of one class only, and METIS not told of them, so that the parts differ.
    graph.split[(graph.split == 1) & (graph.labels != 0)] = 0
    partitions = partitioned(graph, tmp_path, num_parts=2, balance_train=False)
    config = TrainingConfig(epochs=3, batch_size=4, fan_outs=[3, 5], num_samplers=1)
    result = run(config, partitions, outputs(tmp_path))
    assert result.metrics["epochs_run"] == 3


def test_without_validation_and_test_nodes_their_metrics_are_left_out(tmp_path):
    graph = communities(60, num_train=30)
    graph.split[graph.split != 1] = 0
    partitions = partitioned(graph, tmp_path / "p", num_parts=1)
    metrics = run(TrainingConfig(epochs=2, hidden_size=4), partitions, outputs(tmp_path)).metrics
    assert [name for name in metrics if "accuracy" in name] == ["train_accuracy"]
    assert "Classes, on the training nodes" in (tmp_path / "report.html").read_text("utf-8")


def test_own_model_and_its_code_travel_with_the_artifact(graph, partitions, tmp_path):
    code = tmp_path / "own_model_of_test.py"
    code.write_text(
        "from dgl.nn import SAGEConv\n"
        "from torch import nn\n\n\n"
        "class Own(nn.Module):\n"
        "    def __init__(self, into, width, out):\n"
        "        super().__init__()\n"
        "        self.one, self.two = SAGEConv(into, width, 'mean'), SAGEConv(width, out, 'mean')\n\n"
        "    def forward(self, blocks, x):\n"
        "        return self.two(blocks[1], self.one(blocks[0], x).relu())\n\n\n"
        "def build(num_features, num_classes, width):\n"
        "    return Own(num_features, width, num_classes)\n"
    )
    config = TrainingConfig(
        entry_point="own_model_of_test:build", user_code=str(code), model_options={"width": 16.0}, epochs=60
    )
    out = outputs(tmp_path)
    result = run(config, partitions, out)
    assert result.metrics["test_accuracy"] > 0.5
    code.unlink()
    model = read_trained_gnn(out.model).build()
    assert not model.training
    sys.modules.pop("own_model_of_test")


def test_a_failing_model_ends_everything_and_is_named(partitions, tmp_path):
    code = tmp_path / "bad_model_of_test.py"
    code.write_text(
        "from torch import nn\n\n\n"
        "class Bad(nn.Module):\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        "        self.weight = nn.Linear(1, 1)\n\n"
        "    def forward(self, blocks, x):\n"
        "        raise KeyError('no such thing')\n\n\n"
        "def build(num_features, num_classes):\n"
        "    return Bad()\n"
    )
    config = TrainingConfig(entry_point="bad_model_of_test:build", user_code=str(code))
    with pytest.raises(ProcessFailed) as caught:
        run(config, partitions, outputs(tmp_path))
    assert caught.value.replica.startswith("site-0/trainer-")
    assert "no such thing" in caught.value.cause
    assert list((tmp_path / "model-work" / "logs").glob("*trainer-0.log"))


@pytest.mark.parametrize("named", ["absent_of_test:build", "useless_of_test:build", "useless_of_test:NUMBER"])
def test_code_that_builds_no_model_is_named_before_any_process_starts(
    partitions, tmp_path, monkeypatch, named
):
    code = tmp_path / "useless_of_test.py"
    code.write_text("NUMBER = 1\n\n\ndef build(num_features, num_classes):\n    return NUMBER\n")
    monkeypatch.setattr("geokfp.components.training.run.run_job", lambda *_, **__: pytest.fail("it started"))
    with pytest.raises(InputError, match=f"^entry_point '{named}': "):
        run(TrainingConfig(entry_point=named, user_code=str(code)), partitions, outputs(tmp_path))
    assert [path.name for path in tmp_path.iterdir()] == ["useless_of_test.py"]
    sys.modules.pop("useless_of_test", None)


def test_bad_inputs_are_named_before_anything_starts(graph, tmp_path, partitions):
    two_sites = partitioned(graph, tmp_path / "sites", num_sites=2, num_parts=1)
    with pytest.raises(InputError, match="site '': must be one of site-0, site-1"):
        run(TrainingConfig(), two_sites, outputs(tmp_path))


def test_a_warm_start_goes_on_from_the_weights_and_takes_the_architecture(graph, partitions, tmp_path):
    first = outputs(tmp_path / "first")
    run(TrainingConfig(architecture="gcn", hidden_size=12, num_layers=3, epochs=4), partitions, first)
    barely = TrainingConfig(warm_start=f"file:{first.model}", learning_rate=1e-9, epochs=1, num_layers=2)
    second = outputs(tmp_path / "second")
    run(barely, partitions, second)
    before, after = (read_trained_gnn(out.model) for out in (first, second))
    assert (after.source.architecture, after.source.num_layers) == ("gcn", 3)
    for was, now in zip(before.build().parameters(), after.build().parameters(), strict=True):
        assert torch.allclose(was, now, atol=1e-7)


def test_a_warm_start_that_does_not_fit_is_refused(partitions, tmp_path):
    source = ModelSource(architecture="sage", num_features=5, num_classes=3, num_layers=2)
    path = tmp_path / "narrow"
    schema = {"label_names": ["a", "b", "c"], "feature_names": [], "fingerprint": ""}
    write_trained_gnn(
        path, source=source, weights=source.build().state_dict(), schema=schema, metrics={}, history=[]
    )
    with pytest.raises(InputError, match=r"warm_start .*narrow': the model takes 5 features, the partitions"):
        run(TrainingConfig(warm_start=str(path)), partitions, outputs(tmp_path / "out"))
    with pytest.raises(InputError, match=r"absent/manifest.json: no such file"):
        run(TrainingConfig(warm_start=str(tmp_path / "absent")), partitions, outputs(tmp_path / "out"))
