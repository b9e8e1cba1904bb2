"""The trained model artifact: what is written is read, and the drawing in its module is true."""

import json
import re

import pytest
import torch
from geokfp.components._files import ArtifactError
from geokfp.components.table_training import trained_model
from geokfp.components.table_training.source import ModelSource
from geokfp.components.table_training.trained_model import read_trained_model, write_trained_model
from geokfp.components.training.trained_gnn import save_weights

SCHEMA = {
    "feature_dtype": "float32",
    "label_names": ["a", "b", "c"],
    "feature_names": ["w", "x", "y", "z"],
    "fingerprint": "f00",
}
USER_CODE = """import torch


def build(feature_shape, num_classes, width=2):
    model = torch.nn.Sequential(torch.nn.Linear(feature_shape[0], width), torch.nn.Linear(width, num_classes))
    return model, torch.nn.CrossEntropyLoss(), torch.optim.SGD(model.parameters(), lr=0.1)
"""


def write(folder, source, framework="torch"):
    weights = folder / "weights"
    weights.mkdir()
    model = source.build().model
    if framework == "torch":
        save_weights(model, weights / trained_model.WEIGHTS)
    else:
        (weights / trained_model.SYMBOL).write_text("{}")
        (weights / trained_model.PARAMETERS).write_bytes(b"p")
    write_trained_model(
        folder / "model",
        source=source,
        weights=weights,
        schema={"framework": framework, **SCHEMA},
        metrics={"test_accuracy": 0.5},
        history=[{"site": "site-0", "epoch": 1, "seconds": 0.25}],
    )
    return model


def of_user(folder):
    (folder / "code").mkdir()
    (folder / "code" / "model_of_artifact_test.py").write_text(USER_CODE)
    return ModelSource(
        entry_point="model_of_artifact_test:build",
        hyperparameters={"width": 5},
        feature_shape=(4,),
        num_classes=3,
        user_code=folder / "code",
    )


@pytest.fixture
def built_in():
    return ModelSource(algorithm="mlp", hyperparameters={"hidden_size": 7}, feature_shape=(4,), num_classes=3)


def drawn() -> set[str]:
    """Names in the drawing of the module's docstring."""
    return set(re.findall(r"^    (\S+?)/? {2,}\S", trained_model.__doc__ or "", flags=re.MULTILINE))


@pytest.mark.parametrize("framework", ["torch", "mxnet"])
def test_the_folder_is_as_drawn(tmp_path, framework):
    write(tmp_path, of_user(tmp_path), framework)
    others = {name for key, names in trained_model.WEIGHT_FILES.items() if key != framework for name in names}
    assert {path.name for path in (tmp_path / "model").iterdir()} == drawn() - others


def test_the_users_model_is_built_from_the_artifact_alone(tmp_path):
    source = of_user(tmp_path)
    model = write(tmp_path, source)
    read = read_trained_model(tmp_path / "model")
    assert read.source.user_code == tmp_path / "model" / "user_code"
    rows = torch.randn(5, 4)
    rebuilt = read.build()
    assert not rebuilt.training
    torch.testing.assert_close(rebuilt(rows), model(rows))


def test_what_is_written_is_read(tmp_path, built_in):
    write(tmp_path, built_in)
    read = read_trained_model(tmp_path / "model")
    assert read.source == built_in
    assert read.task == "classification"
    assert (read.label_names, read.feature_names) == (("a", "b", "c"), ("w", "x", "y", "z"))
    assert (read.feature_dtype, read.fingerprint, read.framework) == ("float32", "f00", "torch")
    assert read.metrics == {"test_accuracy": 0.5}
    assert read.history == [{"site": "site-0", "epoch": 1, "seconds": 0.25}]
    keys = set(json.loads((tmp_path / "model" / "manifest.json").read_text())) - {"kind", "version", "files"}
    told = set(re.findall(r"`(\w+)`", (trained_model.__doc__ or "").partition("Keys of the manifest")[2]))
    assert keys <= told


def test_a_model_of_mxnet_is_not_built_by_torch(tmp_path, built_in):
    write(tmp_path, built_in, "mxnet")
    read = read_trained_model(tmp_path / "model")
    assert [path.name for path in read.weights] == ["model-symbol.json", "model-0000.params"]
    with pytest.raises(ArtifactError, match=r"of mxnet.*model-symbol\.json"):
        read.build()


def test_an_altered_file_and_a_missing_key_are_refused(tmp_path, built_in):
    write(tmp_path, built_in)
    manifest = tmp_path / "model" / "manifest.json"
    document = json.loads(manifest.read_text())
    manifest.write_text(json.dumps({key: value for key, value in document.items() if key != "algorithm"}))
    with pytest.raises(ArtifactError, match="lacks 'algorithm'"):
        read_trained_model(tmp_path / "model")
    (tmp_path / "model" / "history.json").write_text("[]")
    with pytest.raises(ArtifactError, match="altered"):
        read_trained_model(tmp_path / "model")
