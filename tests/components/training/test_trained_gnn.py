import re
import sys

import pytest
import torch
from geokfp.components._files import ArtifactError, InputError
from geokfp.components.training import trained_gnn
from geokfp.components.training.trained_gnn import ModelSource, read_trained_gnn, write_trained_gnn
from geokfp.components.training.user_code import build_user_model, fetch_user_code, load_builder

SCHEMA = {"label_names": ["a", "b"], "feature_names": [], "fingerprint": "f"}
OWN = """
from torch import nn


def build(num_features, num_classes):
    return nn.Linear(num_features, num_classes)
"""


def write(path, source):
    torch.manual_seed(0)
    model = source.build()
    write_trained_gnn(
        path,
        source=source,
        weights=model.state_dict(),
        schema=SCHEMA,
        metrics={"test_accuracy": 0.5},
        history=[{"epoch": 1}],
    )
    return model


@pytest.mark.parametrize("architecture", ["sage", "gcn", "gat"])
def test_round_trip(architecture, tmp_path):
    source = ModelSource(
        architecture=architecture,
        options={"hidden_size": 8, "dropout": 0.1},
        num_features=5,
        num_classes=2,
        num_layers=3,
    )
    model = write(tmp_path / "model", source)
    found = read_trained_gnn(tmp_path / "model")
    assert found.source == source
    assert (found.label_names, found.metrics) == (("a", "b"), {"test_accuracy": 0.5})
    assert found.history == [{"epoch": 1}]
    built = found.build()
    assert not built.training
    for name, tensor in model.state_dict().items():
        assert torch.equal(built.state_dict()[name], tensor)


def test_folder_is_as_drawn(tmp_path):
    code = tmp_path / "code"
    code.mkdir()
    (code / "drawn_of_test.py").write_text(OWN)
    source = ModelSource(
        architecture="",
        entry_point="drawn_of_test:build",
        num_features=5,
        num_classes=2,
        num_layers=1,
        user_code=code,
    )
    write(tmp_path / "model", source)
    drawn = set(re.findall(r"^    (\S+?)/? {2,}", trained_gnn.__doc__, re.MULTILINE))
    assert drawn == {path.name for path in (tmp_path / "model").iterdir()}
    sys.modules.pop("drawn_of_test")
    sys.path.remove(str(code))
    assert read_trained_gnn(tmp_path / "model").build().weight.shape == (2, 5)


def test_weights_of_another_model_and_altered_files_are_refused(tmp_path):
    source = ModelSource(architecture="gcn", num_features=5, num_classes=2, num_layers=2)
    write(tmp_path / "model", source)
    write(tmp_path / "other", ModelSource(architecture="gcn", num_features=6, num_classes=2, num_layers=2))
    other = (tmp_path / "other" / "weights.safetensors").read_bytes()
    (tmp_path / "model" / "weights.safetensors").write_bytes(other)
    with pytest.raises(ArtifactError, match="checksum"):
        read_trained_gnn(tmp_path / "model")
    with pytest.raises(ArtifactError, match="the weights do not fit the model"):
        read_trained_gnn(tmp_path / "model", verify=False).build()


def test_user_code_from_a_folder_and_from_a_file(tmp_path):
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "one_of_test.py").write_text(OWN)
    fetch_user_code(str(tmp_path / "code"), tmp_path / "from_folder")
    fetch_user_code(str(tmp_path / "code" / "one_of_test.py"), tmp_path / "from_file")
    for folder in ("from_folder", "from_file"):
        assert [path.name for path in (tmp_path / folder).iterdir()] == ["one_of_test.py"]


def test_user_code_that_cannot_be_used_is_named(tmp_path):
    with pytest.raises(InputError, match=r"allowed are a folder that exists and a \.py file"):
        fetch_user_code(str(tmp_path / "x.zip"), tmp_path / "code")
    with pytest.raises(InputError, match=r"x\.py: no such file"):
        fetch_user_code(str(tmp_path / "x.py"), tmp_path / "code")
    with pytest.raises(InputError, match="No module named 'nowhere_of_test'"):
        load_builder("nowhere_of_test:build", None)
    with pytest.raises(InputError, match="json has no function 'build'"):
        load_builder("json:build", None)
    with pytest.raises(InputError, match="'decoder' of json is of type module, a function is needed"):
        load_builder("json:decoder", None)


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("def build(a, b): return {}", "returned dict, an nn.Module is needed"),
        ("def build(a, b):\n    return a / 0", "code.py:2: ZeroDivisionError: division by zero"),
        ("def build(a, b): exit('no\\nmore')", "code.py:1: SystemExit: no more"),
        ("def build(a): pass", "TypeError: build() takes 1 positional argument but 2 were given"),
        ("import nowhere_of_test", "code.py:1: ModuleNotFoundError: No module named 'nowhere_of_test'"),
        ("\ndef build(a, b)", "code.py:2: SyntaxError: expected ':'"),
        ("\nraise KeyError", "code.py:2: KeyError"),
    ],
)
def test_whatever_the_users_code_raises_is_one_line_that_names_it(tmp_path, monkeypatch, code, message):
    monkeypatch.syspath_prepend(tmp_path)
    name = f"own_{tmp_path.name}"
    (tmp_path / f"{name}.py").write_text(code + "\n")
    with pytest.raises(InputError) as caught:
        build_user_model(f"{name}:build", tmp_path, 1, 1, {})
    expected = message.replace("code.py", f"{name}.py")
    assert str(caught.value) == f"entry_point '{name}:build': {expected}"
