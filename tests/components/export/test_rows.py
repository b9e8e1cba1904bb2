"""Exports models trained over rows, of torch and of gluon, and runs the files as a stranger would."""

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
import torch
from geokfp.components._files import ArtifactError, InputError, read_manifest, write_manifest
from geokfp.components.export import exported_model, table_export
from geokfp.components.export.config import ExportConfig
from geokfp.components.export.exported_model import read_exported_model
from geokfp.components.export.run import Inputs, Outputs, run
from geokfp.components.export.verify import OutputsDiffer
from geokfp.components.shard.shards import KIND, VERSION, read_shards
from geokfp.components.table_training.rows import entering
from geokfp.components.table_training.source import ModelSource
from geokfp.components.table_training.trained_model import read_trained_model, write_trained_model
from geokfp.components.training.trained_gnn import save_weights
from support.site_shards import arrays, sharded

# MXNet names what NumPy has deprecated when it is imported.
pytestmark = pytest.mark.filterwarnings(
    "ignore::DeprecationWarning", "ignore:Cannot decide type for the following arguments:UserWarning"
)
torch.set_num_threads(1)

TORCH = """
import torch

class Own(torch.nn.Module):
    def __init__(self, width, out):
        super().__init__()
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(width, 5), torch.nn.BatchNorm1d(5), torch.nn.Tanh(), torch.nn.Linear(5, out)
        )

    def forward(self, x):
        return self.layers(x)

def build(feature_shape, num_classes):
    model = Own(feature_shape[0], max(num_classes, 1))
    loss = torch.nn.CrossEntropyLoss() if num_classes else torch.nn.MSELoss()
    return model, loss, torch.optim.SGD(model.parameters(), lr=0.1)
"""
SIZE_BAKED_IN = TORCH.replace("return self.layers(x)", "return self.layers(x) * (int(len(x)) % 7)")
NO_ONNX = TORCH.replace("self.layers(x)", "self.layers(x) + torch.special.bessel_j0(x.sum(1, keepdim=True))")
GLUON = """
import mxnet as mx
from mxnet import gluon

def build(feature_shape, num_classes):
    net = gluon.nn.HybridSequential()
    net.add(gluon.nn.Dense(6), gluon.nn.BatchNorm(), gluon.nn.LayerNorm(), gluon.nn.Activation("relu"))
    net.add(gluon.nn.Dropout(0.5), gluon.nn.Dense(max(num_classes, 1)))
    net.initialize(mx.init.Xavier())
    return net, gluon.loss.SoftmaxCrossEntropyLoss(), mx.optimizer.SGD()
"""
GLUON_OF_IMAGES = GLUON.replace(
    "    net.add(gluon.nn.Dense(6)",
    "    net.add(gluon.nn.HybridLambda(lambda F, x: F.expand_dims(x, 1)))\n"
    "    net.add(gluon.nn.Conv2D(4, 3, padding=1), gluon.nn.MaxPool2D(2))\n"
    "    net.add(gluon.nn.Dense(6)",
)
GLUON_FLAT = GLUON.replace(
    "    net.initialize",
    "    net.add(gluon.nn.HybridLambda(lambda F, x: x.reshape((-1,))))\n    net.initialize",
)
GLUON_NO_ONNX = GLUON.replace(
    "    net.initialize",
    "    net.add(gluon.nn.HybridLambda(lambda F, x: F.gammaln(F.abs(x) + 1)))\n    net.initialize",
)


@pytest.fixture(scope="module")
def numbers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Rows of four numbers and three classes."""
    folder, generator = tmp_path_factory.mktemp("numbers"), np.random.default_rng(0)
    x = generator.normal(size=(80, 4)).astype(np.float32)
    return sharded(folder, table=arrays(folder, x, generator.integers(3, size=80)))


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Images of 4 x 5 bytes."""
    folder, generator = tmp_path_factory.mktemp("images"), np.random.default_rng(0)
    x = generator.integers(256, size=(60, 4, 5), dtype=np.uint8)
    return sharded(folder, table=arrays(folder, x, np.arange(60) % 3))


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Rows of four numbers labelled by numbers."""
    folder, generator = tmp_path_factory.mktemp("measured"), np.random.default_rng(0)
    x = generator.normal(size=(60, 4)).astype(np.float32)
    return sharded(folder, table=arrays(folder, x, x.sum(1)), task="regression")


@pytest.fixture
def trained(tmp_path: Path) -> Callable[..., Path]:
    """Writes a trained model with weights as they begin and returns its folder."""

    def write(data: Path, algorithm: str = "", *, code: str = "", **changes: object) -> Path:
        shards = read_shards(data)
        name = f"{tmp_path.name}_rows"
        if code:
            (tmp_path / "code").mkdir()
            (tmp_path / "code" / f"{name}.py").write_text(code, encoding="utf-8")
        source = ModelSource(
            algorithm=algorithm,
            entry_point=f"{name}:build" if code else "",
            feature_shape=shards.feature_type.shape,
            num_classes=shards.num_classes,
            user_code=tmp_path / "code" if code else None,
        )
        torch.manual_seed(0)
        built = source.build()
        weights = tmp_path / "weights"
        weights.mkdir()
        if built.framework == "torch":
            save_weights(built.model, weights / "weights.safetensors")
        else:
            import mxnet as mx

            built.model.hybridize()
            built.model(mx.nd.array(entering(shards.sites[0].features()[:2])))
            built.model.export(str(weights / "model"))
        schema = {
            "framework": built.framework,
            "feature_dtype": shards.feature_type.dtype,
            "label_names": list(shards.label_names),
            "feature_names": list(shards.feature_names),
            "fingerprint": shards.fingerprint,
        }
        write_trained_model(
            tmp_path / "model",
            source=source,
            weights=weights,
            schema={**schema, **changes},
            metrics={"test_accuracy": 0.5},
            history=[],
        )
        return tmp_path / "model"

    return write


def exported(model: Path, data: Path, tmp_path: Path, **options: object) -> tuple[Path, dict[str, float]]:
    outputs = Outputs(exported=tmp_path / "exported", report=tmp_path / "report.html")
    result = run(ExportConfig(**options), Inputs(model=model, data=data), outputs)
    return outputs.exported, result.metrics


def of_onnx(folder: Path, rows: np.ndarray) -> np.ndarray:
    session = onnxruntime.InferenceSession(str(folder / "model.onnx"), providers=["CPUExecutionProvider"])
    (found,) = session.run(None, {"x": rows})
    return found


def of_torch(model: Path, rows: np.ndarray) -> np.ndarray:
    with torch.no_grad():
        return read_trained_model(model).build()(torch.from_numpy(entering(rows))).numpy()


def of_gluon(model: Path, rows: np.ndarray) -> np.ndarray:
    import mxnet as mx

    symbol, parameters = read_trained_model(model).weights
    block = mx.gluon.SymbolBlock.imports(str(symbol), ["data"], str(parameters))
    return block(mx.nd.array(entering(rows))).asnumpy()


def drawn() -> set[str]:
    drawing = (exported_model.__doc__ or "").split("exported/\n")[1].split("\n\n")[0]
    return {line.split()[0].rstrip("/") for line in drawing.splitlines()}


def run_programs(folder: Path) -> int:
    programs = re.findall(r"```python\n(.*?)```", (folder / "README.md").read_text(encoding="utf-8"), re.S)
    for program in programs:
        command = [sys.executable, "-W", "ignore", "-c", program]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert done.stdout
    return len(programs)


@pytest.mark.parametrize("algorithm", ["mlp", "softmax_regression", "cnn"])
def test_a_built_in_model_over_bytes_takes_them_as_they_lie(
    algorithm: str, trained: Callable[..., Path], images: Path, tmp_path: Path
) -> None:
    model = trained(images, algorithm)
    folder, metrics = exported(model, images, tmp_path)
    rows = np.array(read_shards(images).sites[1].features())
    wanted = of_torch(model, rows)
    np.testing.assert_allclose(of_onnx(folder, rows), wanted, atol=1e-4)
    script = torch.jit.load(str(folder / "model.pt"))
    np.testing.assert_allclose(script(torch.from_numpy(rows)).detach(), wanted, atol=1e-5)
    assert metrics["max_abs_difference"] <= 1e-4
    assert metrics["same_labels"] == 1.0
    read = read_exported_model(folder)
    assert read.label_names == ("0", "1", "2")
    assert sorted(read.formats) == ["onnx", "torchscript"]
    assert [path.name for path in read.weights] == ["weights.safetensors"]
    assert read.card["inputs"]["x"]["type"] == "uint8"
    assert read.card["inputs"]["x"]["shape"] == ["num_rows", 4, 5]
    assert read.card["verification"]["batches"] == [30, 15, 1]


@pytest.mark.parametrize("kind", ["numbers", "images"])
def test_rows_are_drawn_where_all_real_ones_stay_at_their_sites(
    kind: str, trained: Callable[..., Path], tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    data = request.getfixturevalue(kind)
    document = read_manifest(data, kind=KIND, version=VERSION)
    body = {name: value for name, value in document.items() if name not in ("kind", "version", "files")}
    body["sites"] = [{**site, "uri": "s3://oslo/kept/shards"} for site in document["sites"]]
    staying = tmp_path / "staying"
    staying.mkdir()
    write_manifest(staying, kind=KIND, version=VERSION, body=body)
    with pytest.raises(ArtifactError, match=r"its rows stay at its sites .s3://oslo/kept/shards.; only geo_"):
        read_shards(staying)
    folder, metrics = exported(trained(data, "softmax_regression"), staying, tmp_path, formats=[])
    told = read_exported_model(folder).card["verification"]
    assert (told["rows"], told["site"], told["batches"]) == ("drawn rows", "", [256, 128, 1])
    assert metrics["max_abs_difference"] == 0
    assert "Compared on rows drawn at random" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_the_folder_of_torch_is_as_drawn_and_its_programs_run(
    trained: Callable[..., Path], numbers: Path, tmp_path: Path
) -> None:
    folder, _ = exported(trained(numbers, code=TORCH), numbers, tmp_path, model_name="rows")
    of_mxnet = {"model-symbol.json", "model-0000.params"}
    assert {path.name for path in folder.iterdir()} == drawn() - of_mxnet
    assert run_programs(folder) == 3
    repository = folder / "serving" / "triton"
    for kind, x, logits in (("onnx", "x", "logits"), ("torchscript", "x__0", "logits__0")):
        config = (repository / f"rows-{kind}" / "config.pbtxt").read_text(encoding="utf-8")
        assert f'{{ name: "{x}", data_type: TYPE_FP32, dims: [ -1, 4 ] }}' in config
        assert f'{{ name: "{logits}", data_type: TYPE_FP32, dims: [ -1, 3 ] }}' in config
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "Rows compared" in page
    assert "DGL" not in page


def test_a_gluon_block_gives_symbol_parameters_and_onnx_that_run_alone(
    trained: Callable[..., Path], images: Path, tmp_path: Path
) -> None:
    model = trained(images, code=GLUON_OF_IMAGES)
    folder, metrics = exported(model, images, tmp_path)
    of_torch_alone = {"weights.safetensors", "model.pt"}
    assert {path.name for path in folder.iterdir()} == drawn() - of_torch_alone
    rows = np.array(read_shards(images).sites[1].features())
    np.testing.assert_allclose(of_onnx(folder, rows), of_gluon(model, rows), atol=1e-4)
    assert sorted(key for key in metrics if key.endswith("_bytes")) == [
        "onnx_bytes", "parameters_bytes", "symbol_bytes"
    ]  # fmt: skip
    read = read_exported_model(folder)
    assert [path.name for path in read.weights] == ["model-symbol.json", "model-0000.params"]
    assert sorted(read.formats) == ["onnx"]
    assert "MXNet" in read.card["not_exported"]["torchscript"]
    assert "divided by 255" in read.card["files"]["symbol"]["takes"]
    assert "mxnet" in read.card["versions"]
    assert [path.name for path in (folder / "serving" / "triton").iterdir()] == ["gnn-onnx"]
    assert run_programs(folder) == 2


@pytest.mark.parametrize("code", [TORCH, GLUON, GLUON_FLAT], ids=["torch", "gluon", "gluon of [n]"])
def test_regression_gives_one_value_a_row(
    code: str, trained: Callable[..., Path], measured: Path, tmp_path: Path
) -> None:
    model = trained(measured, code=code)
    folder, metrics = exported(model, measured, tmp_path, formats=["onnx"])
    rows = np.array(read_shards(measured).sites[1].features())
    wanted = of_torch(model, rows) if code == TORCH else of_gluon(model, rows)
    np.testing.assert_allclose(of_onnx(folder, rows), wanted.reshape(-1, 1), atol=1e-4)
    assert "same_labels" not in metrics
    card = read_exported_model(folder).card
    assert card["outputs"]["values"]["shape"] == ["num_rows", 1]
    assert card["not_exported"] == {}
    assert run_programs(folder) == 2


@pytest.mark.parametrize(
    ("code", "name"), [(NO_ONNX, "bessel_j0"), (GLUON_NO_ONNX, "gammaln")], ids=["torch", "gluon"]
)
def test_an_operator_that_onnx_lacks_is_named(
    code: str, name: str, trained: Callable[..., Path], numbers: Path, tmp_path: Path
) -> None:
    folder, _ = exported(trained(numbers, code=code), numbers, tmp_path)
    read = read_exported_model(folder)
    assert "onnx" not in read.formats
    assert name in read.card["not_exported"]["onnx"]
    assert name in (tmp_path / "report.html").read_text(encoding="utf-8")
    assert name in (folder / "README.md").read_text(encoding="utf-8")
    assert not (folder / "model.onnx").exists()


def test_a_size_baked_in_by_tracing_is_found(
    trained: Callable[..., Path], numbers: Path, tmp_path: Path
) -> None:
    with pytest.raises(OutputsDiffer, match=r"real rows; the tolerance is 0\.0001"):
        exported(trained(numbers, code=SIZE_BAKED_IN), numbers, tmp_path, formats=["torchscript"])
    assert not (tmp_path / "exported").exists()


def test_a_changed_file_fails_the_step(
    trained: Callable[..., Path], numbers: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, copy = trained(numbers, code=GLUON), table_export.shutil.copyfile

    def changing(source: Path, target: Path, **how: bool) -> None:
        copy(source, target, **how)
        if Path(target).name == "model-symbol.json":
            graph = json.loads(target.read_text(encoding="utf-8"))
            last = next(node for node in reversed(graph["nodes"]) if node["op"] == "Activation")
            last["attrs"]["act_type"] = "sigmoid"
            target.write_text(json.dumps(graph), encoding="utf-8")

    monkeypatch.setattr(table_export.shutil, "copyfile", changing)
    with pytest.raises(OutputsDiffer, match=r"^model-symbol\.json: outputs differ"):
        exported(model, numbers, tmp_path, formats=[])
    assert not (tmp_path / "exported").exists()


def test_torchscript_of_a_gluon_block_is_refused_by_name(
    trained: Callable[..., Path], numbers: Path, tmp_path: Path
) -> None:
    said = r"^formats \['torchscript'\]: must be among onnx for mxnet$"
    with pytest.raises(InputError, match=said):
        exported(trained(numbers, code=GLUON), tmp_path / "absent", tmp_path, formats=["torchscript"])
    assert not (tmp_path / "exported").exists()


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ("images", r"takes rows of float32 \[4\], the shards have uint8 \[4, 5\]; they must be equal"),
        ("measured", "is for classification, the shards are for regression; they must be equal"),
    ],
)
def test_a_model_of_other_rows_is_refused(
    other: str,
    said: str,
    trained: Callable[..., Path],
    numbers: Path,
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> None:
    with pytest.raises(InputError, match=said):
        exported(trained(numbers, "mlp"), request.getfixturevalue(other), tmp_path)


def test_the_kind_in_the_manifest_decides(
    trained: Callable[..., Path], numbers: Path, tmp_path: Path
) -> None:
    with pytest.raises(
        ArtifactError, match=r"kind is 'geokfp\.shards'; a geokfp\.trained_gnn or geokfp\.trai"
    ):
        exported(numbers, numbers, tmp_path)
    model = trained(numbers, "mlp")
    with pytest.raises(ArtifactError, match=r"kind is 'geokfp\.trained_model', 'geokfp\.shards' is needed"):
        exported(model, model, tmp_path)
    (model / "manifest.json").write_text("{")
    with pytest.raises(ArtifactError, match="not JSON"):
        exported(model, numbers, tmp_path)
