"""Exports what every kind of model gives, and runs it where DGL cannot be imported."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from geokfp.components._files import InputError, read_manifest, write_manifest
from geokfp.components.export import gnn_export
from geokfp.components.export import run as export
from geokfp.components.export.config import ExportConfig
from geokfp.components.export.exported_model import read_exported_model
from geokfp.components.export.real_nodes import Case, block_logits, real_cases
from geokfp.components.export.run import Inputs, Outputs
from geokfp.components.export.verify import OutputsDiffer
from geokfp.components.partition.partitions import KIND, VERSION, read_partitions
from geokfp.components.training.models import ARCHITECTURES
from geokfp.components.training.trained_gnn import read_trained_gnn

ONNX_ALONE = """
import json, sys
for name in ("dgl", "torch", "geokfp"):
    sys.modules[name] = None
import numpy as np, onnxruntime
session = onnxruntime.InferenceSession(sys.argv[1], providers=["CPUExecutionProvider"])
print(json.loads(session.get_modelmeta().custom_metadata_map["label_names"]))
given = np.load(sys.argv[2])
(logits,) = session.run(["logits"], {"x": given["x"], "edge_index": given["edge_index"]})
print(logits.argmax(1).tolist())
"""

OVER_MESSAGE_PASSING = """
import torch
from geokfp.components.training.message_passing import graph_of, mean_messages

class Own(torch.nn.Module):
    def __init__(self, num_features, num_classes):
        super().__init__()
        self.first = torch.nn.Linear(num_features, 5)
        self.last = torch.nn.Linear(5, num_classes)

    def forward(self, blocks, x):
        for block, layer in zip(blocks, (self.first, self.last), strict=True):
            x = torch.tanh(layer(mean_messages(graph_of(block), x)))
        return x

def build(num_features, num_classes):
    return Own(num_features, num_classes)
"""

OF_LAYERS = """
import torch
from geokfp.components.training.message_passing import mean_messages
from geokfp.components.training.models import Stack

class Mean(torch.nn.Module):
    def __init__(self, into, out):
        super().__init__()
        self.fc = torch.nn.Linear(into, out)

    def forward(self, graph, x):
        return self.fc(mean_messages(graph, x))

def build(num_features, num_classes):
    layers = [Mean(num_features, 5), Mean(5, num_classes)]
    return Stack(layers, [5, num_classes], activation="relu", dropout=0.5, input_dropout=0.0)
"""

OVER_DGL = """
import torch
from dgl.nn import SAGEConv

class Own(torch.nn.Module):
    def __init__(self, num_features, num_classes):
        super().__init__()
        self.layers = torch.nn.ModuleList([
            SAGEConv(num_features, 5, "mean"), SAGEConv(5, num_classes, "mean")])

    def forward(self, blocks, x):
        for block, layer in zip(blocks, self.layers, strict=True):
            x = layer(block, x)
        return x

def build(num_features, num_classes):
    return Own(num_features, num_classes)
"""

SIZES_BAKED_IN = OVER_MESSAGE_PASSING.replace(
    "x = torch.tanh(", "x = torch.ones(x.shape[0], 1).mul(int(len(x)) % 7) + torch.tanh("
)


def exported(
    model: Path, partitions: Path, tmp_path: Path, **options: object
) -> tuple[Path, dict[str, float]]:
    outputs = Outputs(exported=tmp_path / "exported", report=tmp_path / "report.html")
    result = export.run(ExportConfig(**options), Inputs(model=model, data=partitions), outputs)
    return outputs.exported, result.metrics


def whole_site(partitions: Path) -> Case:
    site = read_partitions(partitions).sites[0]
    return real_cases(site, num_features=7, num_seeds=10_000, num_layers=2, seed=0)[0]


@pytest.mark.parametrize("architecture", sorted(ARCHITECTURES))
def test_onnx_alone_gives_the_same_labels(
    architecture: str, trained_gnn: Callable[..., Path], partitions: Path, tmp_path: Path
) -> None:
    model = trained_gnn(architecture)
    folder, metrics = exported(model, partitions, tmp_path)
    case = whole_site(partitions)
    np.savez(tmp_path / "graph.npz", x=case.x.numpy(), edge_index=case.edge_index.numpy())
    done = subprocess.run(
        [sys.executable, "-c", ONNX_ALONE, str(folder / "model.onnx"), str(tmp_path / "graph.npz")],
        capture_output=True,
        text=True,
        check=True,
    )
    names, labels = done.stdout.splitlines()
    wanted = block_logits(read_trained_gnn(model).build(), case, num_layers=2)
    assert names == "['cat', 'dog', 'eel']"
    assert len(case.seeds) == 90
    assert json.loads(labels) == wanted.argmax(1).tolist()
    assert 0 <= metrics["max_abs_difference"] <= 1e-4
    assert metrics["same_labels"] == 1.0
    read = read_exported_model(folder)
    assert sorted(read.formats) == ["onnx", "torchscript"]
    assert read.label_names == ("cat", "dog", "eel")


@pytest.mark.parametrize("architecture", sorted(ARCHITECTURES))
def test_seeds_get_the_logits_of_the_whole_graph(
    architecture: str, trained_gnn: Callable[..., Path], partitions: Path
) -> None:
    site = read_partitions(partitions).sites[0]
    model = read_trained_gnn(trained_gnn(architecture, num_layers=1)).build()
    some = real_cases(site, num_features=7, num_seeds=3, num_layers=1, seed=1)[0]
    everything = whole_site(partitions)
    assert len(some.x) < len(everything.x)
    where = [int((everything.x == row).all(1).nonzero()) for row in some.x[some.seeds]]
    expected = block_logits(model, everything, num_layers=1)[where]
    np.testing.assert_allclose(block_logits(model, some, num_layers=1), expected, atol=1e-5)


@pytest.mark.parametrize("code", [OVER_MESSAGE_PASSING, OF_LAYERS])
def test_a_users_model_over_message_passing_exports_to_everything(
    code: str, trained_gnn: Callable[..., Path], partitions: Path, tmp_path: Path
) -> None:
    folder, metrics = exported(trained_gnn(code=code), partitions, tmp_path)
    read = read_exported_model(folder)
    assert sorted(read.formats) == ["onnx", "torchscript"]
    assert read.card["not_exported"] == {}
    assert metrics["max_abs_difference"] <= 1e-4
    assert list((folder / "user_code").glob("*_model.py"))


def test_a_users_model_over_dgl_gives_weights_and_card_and_says_why(
    trained_gnn: Callable[..., Path], partitions: Path, tmp_path: Path
) -> None:
    folder, metrics = exported(trained_gnn(code=OVER_DGL), partitions, tmp_path)
    read = read_exported_model(folder)
    assert read.formats == {}
    assert sorted(read.card["not_exported"]) == ["onnx", "torchscript"]
    assert "message_passing" in read.card["not_exported"]["onnx"]
    assert "AttributeError" in read.card["not_exported"]["onnx"]
    assert "message_passing" in (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "message_passing" in (folder / "README.md").read_text(encoding="utf-8")
    assert metrics["max_abs_difference"] <= 1e-6
    assert "onnx_bytes" not in metrics
    assert not (folder / "serving").exists()


@pytest.mark.parametrize("name", ["torchscript", "onnx"])
def test_a_tampered_weight_fails_the_step_and_leaves_nothing(
    name: str,
    trained_gnn: Callable[..., Path],
    partitions: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    module = getattr(gnn_export, name)
    write = getattr(module, f"write_{name}")

    def tampered(model: torch.nn.Module, *arguments: object, **options: object) -> None:
        parameter = next(model.parameters())
        kept = parameter.data.clone()
        parameter.data.view(-1)[0] += 0.01
        write(model, *arguments, **options)
        parameter.data.copy_(kept)

    monkeypatch.setattr(module, f"write_{name}", tampered)
    differs = r"^model\.\w+: outputs differ by up to .* real nodes; the tolerance is 0.0001"
    with pytest.raises(OutputsDiffer, match=differs) as caught:
        exported(trained_gnn("sage"), partitions, tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model"]
    assert "\n" not in str(caught.value)


def test_sizes_baked_in_by_tracing_are_found(
    trained_gnn: Callable[..., Path], partitions: Path, tmp_path: Path
) -> None:
    with pytest.raises(OutputsDiffer):
        exported(trained_gnn(code=SIZES_BAKED_IN), partitions, tmp_path, formats=["torchscript"])


def test_nodes_are_drawn_where_all_real_ones_stay_at_their_sites(
    trained_gnn: Callable[..., Path], partitions: Path, tmp_path: Path
) -> None:
    document = read_manifest(partitions, kind=KIND, version=VERSION)
    for site in document["sites"]:
        site |= {"uri": "s3://oslo/kept/partitions", "part_bytes": 1}
    staying = tmp_path / "staying"
    staying.mkdir()
    facts = ("features", "labels", "fingerprint", "halo_hops", "sites", "quality")
    write_manifest(staying, kind=KIND, version=VERSION, body={name: document[name] for name in facts})
    outputs = Outputs(exported=tmp_path / "exported", report=tmp_path / "report.html")
    config = ExportConfig(formats=["torchscript"])
    found = export.run(config, Inputs(model=trained_gnn("gcn"), data=staying), outputs)
    assert found.metrics["max_abs_difference"] < 1e-4
    told = read_exported_model(outputs.exported).card["verification"]
    assert (told["nodes"], told["site"]) == ("drawn nodes", "")
    assert [graph["num_compared"] for graph in told["graphs"]] == [256, 512, 1]
    assert "Compared on nodes drawn at random" in outputs.report.read_text(encoding="utf-8")


def test_formats_are_chosen(trained_gnn: Callable[..., Path], partitions: Path, tmp_path: Path) -> None:
    folder, _ = exported(trained_gnn("gcn"), partitions, tmp_path, formats=[])
    assert not list(folder.glob("model.*"))
    assert (folder / "weights.safetensors").is_file()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_features": 6}, "takes 6 features, the partitions have 7"),
        ({"num_classes": 2}, "its classes are not those of the partitions"),
    ],
)
def test_a_model_of_other_data_is_refused(
    changes: dict[str, int],
    message: str,
    trained_gnn: Callable[..., Path],
    partitions: Path,
    tmp_path: Path,
) -> None:
    with pytest.raises(InputError, match=message):
        exported(trained_gnn("sage", **changes), partitions, tmp_path)
    assert not (tmp_path / "exported").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"formats": ["onyx"]}, r"formats \['onyx'\]: must be a list of torchscript and onnx"),
        ({"formats": ["onnx", "onnx"]}, r"formats \['onnx', 'onnx'\]: must be .*, each at most once"),
        ({"formats": "onnx"}, "formats 'onnx': must be a list"),
        ({"tolerance": 0.0}, "tolerance 0.0: must be above 0 and finite"),
        ({"tolerance": float("nan")}, "tolerance nan"),
        ({"verify_nodes": 0}, "verify_nodes 0: must be at least 1"),
        ({"model_name": "My GNN"}, "model_name 'My GNN': must be at most 40 of a-z"),
        ({"timeout_s": 0}, "timeout_s 0: must be at least 1"),
    ],
)
def test_bad_options_are_named(options: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        ExportConfig(**options)
