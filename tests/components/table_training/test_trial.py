"""What cannot be trained is one line, before any worker starts."""

import json
from dataclasses import replace

import pytest
from geokfp.components.table_training import trial
from geokfp.components.table_training.job import source_to
from geokfp.components.table_training.source import ModelSource

# MXNet names what NumPy has deprecated when it is imported.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

GOOD = """
import torch
from torch import nn

def build(feature_shape, num_classes, width=4):
    model = nn.Linear(feature_shape[0], max(num_classes, 1))
    loss = nn.CrossEntropyLoss() if num_classes else nn.MSELoss()
    return model, loss, torch.optim.SGD(model.parameters(), 0.1)
"""
GLUON = """
import mxnet as mx
from mxnet import gluon

def build(feature_shape, num_classes):
    net = gluon.nn.Dense(num_classes)
    net.initialize()
    return net, gluon.loss.SoftmaxCrossEntropyLoss(), mx.optimizer.SGD(learning_rate=0.1)
"""


@pytest.fixture
def tried(tmp_path, request):
    """Returns a function that tries code, and returns what the trial answers."""
    (tmp_path / "code").mkdir()
    (tmp_path / "trial").mkdir()
    name = f"tried_{abs(hash(request.node.name))}"

    def answer(code, **changes):
        (tmp_path / "code" / f"{name}.py").write_text(code)
        source = ModelSource(
            entry_point=f"{name}:build", feature_shape=(3,), num_classes=2, user_code=tmp_path / "code"
        )
        question = trial.Trial(tmp_path / "trial").question
        question.write_text(json.dumps(source_to(replace(source, **changes))))
        trial.main([str(tmp_path / "trial")])
        said = json.loads((tmp_path / "trial" / "trial.json").read_text())
        return {key: value.replace(name, "mine") for key, value in said.items()}

    return answer


@pytest.mark.parametrize("num_classes", [2, 0])
def test_a_model_of_torch_is_known_by_what_it_is(tried, num_classes):
    assert tried(GOOD, num_classes=num_classes) == {"framework": "torch"}


def test_a_model_of_gluon_is_known_by_what_it_is(tried):
    assert tried(GLUON) == {"framework": "mxnet"}


@pytest.mark.parametrize(
    ("code", "old", "new", "said"),
    [
        (GOOD, "return model,", "return", "returned tuple, (model, loss, optimizer) is needed"),
        (GOOD, "return model", "return 3\n    return model", "returned int, (model, loss, optim"),
        (GOOD, "return model", "return 'a'", "the model is of type str, a torch nn.Module or a gluon Hybr"),
        (GOOD, "nn.CrossEntropyLoss()", "7", "the loss is of type int, one that can be called is needed"),
        (GOOD, "torch.optim.SGD(model.parameters(), 0.1)", "0.1", "the optimizer is of type float, a"),
        (GOOD, "model.parameters()", "nn.Linear(2, 2).parameters()", "parameters that are not the model's"),
        (GOOD, "max(num_classes, 1)", "5", "gives outputs of shape [2, 5] for 2 rows, [2, 2] is needed"),
        (GOOD, "feature_shape[0]", "9", "RuntimeError: mat1 and mat2 shapes cannot be multiplied"),
        (GOOD, "CrossEntropyLoss()", "CrossEntropyLoss(reduction='none')", "RuntimeError: grad can be"),
        (GOOD, "    model", "    1 / 0\n    model", "mine.py:6: ZeroDivisionError"),
        (GLUON, "net.initialize()", "", "has not been initialized"),
        (GLUON, "num_classes)\n", "7)\n", "gives outputs of shape [2, 7] for 2 rows, [2, 2] is needed"),
        (GLUON, "mx.optimizer.SGD(learning_rate=0.1)", "1", "an mx.optimizer.Optimizer is needed"),
        (GLUON, "gluon.loss.SoftmaxCrossEntropyLoss()", "lambda o, y: o.sum()", "gives a loss of shape [1]"),
    ],
)  # fmt: skip
def test_what_cannot_be_trained_is_one_line(tried, code, old, new, said):
    assert old in code
    answer = tried(code.replace(old, new))
    assert set(answer) == {"refused"}
    assert said in answer["refused"]
    assert answer["refused"].startswith("entry_point 'mine:build': ")
    assert "\n" not in answer["refused"]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"algorithm": "softmax_regression", "num_classes": 0}, "is for classification"),
        ({"algorithm": "cnn"}, "rows of shape [3] with no image_shape, allowed"),
        ({"algorithm": "cnn", "hyperparameters": {"image_shape": [4, 4]}}, "with image_shape [4, 4]"),
    ],
)  # fmt: skip
def test_an_algorithm_says_what_rows_it_is_for(tried, changes, said):
    answer = tried(GOOD, entry_point="", user_code=None, **changes)
    assert answer["refused"].startswith(f"algorithm '{changes['algorithm']}': ")
    assert said in answer["refused"]
