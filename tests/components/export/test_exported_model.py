"""The exported model's folder: its drawing, what is refused, and that its README's programs run."""

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import onnx
import pytest
import yaml
from geokfp.components._files import ArtifactError
from geokfp.components.export import exported_model
from geokfp.components.export.config import ExportConfig
from geokfp.components.export.exported_model import read_exported_model
from geokfp.components.export.run import Inputs, Outputs, run

BUILD = """
from geokfp.components.training.models import build as build_built_in

def build(num_features, num_classes):
    return build_built_in("sage", num_features, num_classes, hidden_size=4)
"""


def drawn() -> set[str]:
    """Returns the entries of the drawing in the module's docstring."""
    drawing = (exported_model.__doc__ or "").split("exported/\n")[1].split("\n\n")[0]
    return {line.split()[0].rstrip("/") for line in drawing.splitlines()}


@pytest.fixture
def folder(trained_gnn: Callable[..., Path], partitions: Path, tmp_path: Path) -> Path:
    outputs = Outputs(exported=tmp_path / "exported", report=tmp_path / "report.html")
    run(ExportConfig(verify_nodes=4), Inputs(model=trained_gnn(code=BUILD), data=partitions), outputs)
    return outputs.exported


def test_the_drawing_is_what_is_written_and_its_programs_run(folder: Path) -> None:
    assert {path.name for path in folder.iterdir()} == drawn() - {"model-symbol.json", "model-0000.params"}
    programs = re.findall(r"```python\n(.*?)```", (folder / "README.md").read_text(encoding="utf-8"), re.S)
    assert len(programs) == 3
    readme = (Path(run.__code__.co_filename).parent / "README.md").read_text(encoding="utf-8")
    programs += re.findall(r"```python\n(.*?)```", readme, re.S)
    assert len(programs) == 4
    for program in programs:
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", program],
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout
    assert read_exported_model(folder).label_names == ("cat", "dog", "eel")

    card = json.loads((folder / "model_card.json").read_text(encoding="utf-8"))
    assert card["inputs"]["x"]["shape"] == ["num_nodes", 7]
    assert card["metrics"] == {"test_accuracy": 0.5}
    assert card["files"]["onnx"]["bytes"] == (folder / "model.onnx").stat().st_size
    assert card["verification"]["max_abs_difference"] <= card["verification"]["tolerance"]

    (folder / "model.onnx").write_bytes(b"other")
    with pytest.raises(ArtifactError, match="checksum differs"):
        read_exported_model(folder)


def test_the_files_for_servers_fit_the_model(folder: Path) -> None:
    repository = folder / "serving" / "triton"
    assert sorted(path.name for path in repository.iterdir()) == ["gnn-onnx", "gnn-torchscript"]
    for path in repository.iterdir():
        config = (path / "config.pbtxt").read_text(encoding="utf-8")
        assert f'name: "{path.name}"' in config
        assert "dims: [ -1, 7 ]" in config
        assert "dims: [ 2, -1 ]" in config
        assert "dims: [ -1, 3 ]" in config
        (model,) = (path / "1").iterdir()
        assert model.read_bytes() == (folder / model.name).read_bytes()
    config = (repository / "gnn-onnx" / "config.pbtxt").read_text(encoding="utf-8")
    graph = onnx.load(str(folder / "model.onnx")).graph
    for value in (*graph.input, *graph.output):
        assert f'name: "{value.name}"' in config
    service = yaml.safe_load((folder / "serving" / "kserve.yaml").read_text(encoding="utf-8"))
    assert service["kind"] == "InferenceService"
    assert service["metadata"] == {"name": "gnn"}
    assert service["spec"]["predictor"]["model"]["storageUri"].endswith("/triton")


def test_a_card_without_its_parts_is_refused(tmp_path: Path) -> None:
    exported_model.write_manifest(
        tmp_path, kind=exported_model.KIND, version=exported_model.VERSION, body={"formats": {}}
    )
    (tmp_path / "model_card.json").write_text("{}", encoding="utf-8")
    with pytest.raises(ArtifactError, match="a model card has 'architecture'"):
        read_exported_model(tmp_path)
