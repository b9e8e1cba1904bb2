"""The README's two models are what is tried: each is trained over two sites as it stands there."""

import re
from pathlib import Path

import pytest
from geokfp.components.table_training.trained_model import read_trained_model
from support.component_call import call
from support.site_shards import sharded

README = Path(__file__).resolve().parents[3] / "components" / "table_training" / "README.md"
CODE = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), flags=re.DOTALL)
FRAMEWORKS = ("torch", "mxnet")


@pytest.fixture(scope="module")
def shards(tmp_path_factory):
    return sharded(tmp_path_factory.mktemp("digits"))


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_the_model_of_the_readme_learns_digits(shards, tmp_path, framework):
    assert len(CODE) == len(FRAMEWORKS)
    code = tmp_path / f"{framework}_of_readme.py"
    code.write_text(CODE[FRAMEWORKS.index(framework)])
    metrics = call(
        "geo_train",
        tmp_path / "step",
        shards=shards,
        entry_point=f"{framework}_of_readme:build",
        user_code=str(code),
        hyperparameters={"width": 24.0},
        epochs=8,
        num_workers=2,
    )
    assert metrics["test_accuracy"] > 0.9
    model = read_trained_model(tmp_path / "step" / "model")
    assert model.framework == framework
    assert (model.source.user_code / code.name).read_text() == code.read_text()
    assert all(path.is_file() for path in model.weights)
