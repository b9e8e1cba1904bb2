import inspect
import re
from dataclasses import MISSING, fields
from pathlib import Path

import pytest
from geokfp.components._files import InputError
from geokfp.components.training.config import ARCHITECTURES, TrainingConfig
from geokfp.components.training.model_options import DEFAULT_HEADS, MODEL_OPTIONS


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"architecture": "mlp"}, "architecture 'mlp': must be one of sage, gcn, gat"),
        ({"entry_point": "module"}, "entry_point 'module': must be module:function"),
        ({"user_code": "x.py"}, "user_code 'x.py': must be empty without entry_point"),
        ({"epochs": 0}, "epochs 0: must be at least 1"),
        ({"patience": -1}, "patience -1: must be at least 0"),
        ({"dropout": 1.0}, "dropout 1.0: must be at least 0 and below 1"),
        ({"learning_rate": 0.0}, "learning_rate 0.0: must be above 0 and finite"),
        ({"learning_rate": float("inf")}, "learning_rate inf: must be above 0 and finite"),
        ({"fan_outs": [5, 5, 5]}, "fan_outs [5, 5, 5]: must be no number, one, or num_layers (2) of them"),
        ({"fan_outs": [0]}, "fan_outs [0]: must be"),
        ({"fan_outs": ["ten"]}, "fan_outs ['ten']: must be"),
        ({"fan_outs": [2.5]}, "fan_outs [2.5]: must be"),
        ({"weight_decay": float("inf")}, "weight_decay inf: must be at least 0 and finite"),
        ({"model_options": {"num_heads": 2}}, "model_options has 'num_heads'; allowed with sage: input_drop"),
        ({"model_options": {"input_dropout": 1}}, "input_dropout is 1; allowed: at least 0 and below 1"),
        ({"model_options": {"input_dropout": "x"}}, "input_dropout is 'x'; allowed: at least 0 and below 1"),
        (
            {"architecture": "gat", "model_options": {"num_heads": 0}},
            "num_heads is 0; allowed: a whole number from 1 on",
        ),
        (
            {"architecture": "gat", "hidden_size": 12},
            "hidden_size is 12; allowed with gat: a multiple of num",
        ),
    ],
)
def test_bad_values_are_named(changes, message):
    with pytest.raises(InputError, match=re.escape(message)):
        TrainingConfig(**changes)


@pytest.mark.parametrize(
    ("given", "layers"), [([], [-1, -1]), ([10.0], [10, 10]), ([5, 10.0], [5, 10]), ((7,), [7, 7])]
)
def test_fan_outs_per_layer(given, layers):
    assert TrainingConfig(fan_outs=given).layer_fan_outs == layers


def test_whole_numbers_that_arrive_as_floats_are_whole_again():
    given = {"num_heads": 4.0, "input_dropout": 0.25}
    options = TrainingConfig(architecture="gat", model_options=given).build_options
    assert options["num_heads"] == 4
    assert isinstance(options["num_heads"], int)
    assert options["input_dropout"] == 0.25


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_the_options_that_are_allowed_are_those_that_models_take(architecture):
    from geokfp.components.training import models

    assert sorted(ARCHITECTURES) == sorted(models.ARCHITECTURES)
    given = {"input_dropout": 0.25, "num_heads": 2}
    for name in given:
        if name in MODEL_OPTIONS[architecture]:
            models.build(architecture, 3, 2, hidden_size=8, **{name: given[name]})
        else:
            with pytest.raises(InputError, match=name):
                models.build(architecture, 3, 2, hidden_size=8, **{name: given[name]})
    assert models.build("gat", 3, 2, hidden_size=16).layers[0].num_heads == DEFAULT_HEADS


def test_component_has_exactly_the_options_of_the_config():
    from geokfp.components.training.component import train_gnn

    parameters = inspect.signature(train_gnn.python_func).parameters
    shown = {
        name: each.default
        for name, each in parameters.items()
        if each.default is not inspect.Parameter.empty and name != "task_config"
    }
    assert shown == {field.name: default_of(field) for field in fields(TrainingConfig)}


def test_readme_lists_every_option_with_its_default():
    import geokfp.components.training as stage

    text = (Path(stage.__path__[0]) / "README.md").read_text("utf-8")
    for field in fields(TrainingConfig):
        row = re.search(rf"^\| `{field.name}` \|.*$", text, re.MULTILINE)
        assert row, field.name
        assert f"`{default_of(field)!r}`" in row.group(0)


def default_of(field):
    value = field.default if field.default is not MISSING else field.default_factory()
    return list(value) if isinstance(value, tuple) else value
