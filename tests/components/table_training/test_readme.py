"""The README's two models are what is tried: each is trained over two sites as it stands there."""

import re
from pathlib import Path

import numpy as np
import pytest
import torch
from geokfp.components.ingest.graph import TEST
from geokfp.components.shard.shards import read_shards
from geokfp.components.table_training.trained_model import read_trained_model
from support.component_call import call
from support.site_shards import sharded

README = Path(__file__).resolve().parents[3] / "components" / "table_training" / "README.md"
CODE = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), flags=re.DOTALL)
pytestmark = pytest.mark.filterwarnings(
    "ignore::DeprecationWarning",  # MXNet names what NumPy has deprecated when it is imported,
    "ignore:Cannot decide type:UserWarning",  # and that an exported block's input is of any type
)
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
        synchronization="fsa",  # what auto plans depends on how busy the machine is
    )
    assert metrics["test_accuracy"] > 0.9
    model = read_trained_model(tmp_path / "step" / "model")
    assert model.framework == framework
    assert (model.source.user_code / code.name).read_text() == code.read_text()
    assert share_right(model, read_shards(shards)) == pytest.approx(metrics["test_accuracy"], abs=0.003)


def share_right(model, shards):
    right = []
    for site in shards.sites:
        chosen = site.split() == TEST
        outputs = logits(model, np.array(site.features()[chosen]))
        right.append(outputs.argmax(axis=1) == site.labels()[chosen])
    return np.concatenate(right).mean()


def logits(model, features):
    """Runs the artifact as one who has no other part of this package would."""
    if model.framework == "torch":
        with torch.no_grad():
            return model.build()(torch.from_numpy(features)).numpy()
    import mxnet as mx

    symbol, parameters = map(str, model.weights)
    return mx.gluon.SymbolBlock.imports(symbol, ["data"], parameters)(mx.nd.array(features)).asnumpy()
