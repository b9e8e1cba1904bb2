"""What `geo_train` refuses before it reads anything."""

import pytest
from geokfp.components._files import InputError
from geokfp.components.table_training.algorithms import ALGORITHMS
from geokfp.components.table_training.config import GeoTableConfig
from geokfp.components.table_training.hyperparameters import HYPERPARAMETERS


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "entry_point '' and algorithm '': both empty, exactly one is needed"),
        ({"entry_point": "m:f", "algorithm": "mlp"}, "entry_point 'm:f' and algorithm 'mlp': both given"),
        ({"entry_point": "m"}, "entry_point 'm': must be module:function"),
        ({"algorithm": "forest"}, "algorithm 'forest': must be one of softmax_regression, mlp, cnn"),
        ({"algorithm": "mlp", "user_code": "m.py"}, "user_code 'm.py': must be empty without entry_point"),
        ({"algorithm": "mlp", "launcher": "kubernetes"}, "launcher 'kubernetes': must be one of local, job"),
        ({"algorithm": "mlp", "epochs": 0}, "epochs 0: must be at least 1"),
        ({"algorithm": "mlp", "num_workers": 0}, "num_workers 0: must be at least 1"),
        ({"algorithm": "mlp", "seed": -1}, "seed -1: must be 0 to"),
        ({"algorithm": "mlp", "synchronization": "sometimes"}, "synchronization"),
        ({"algorithm": "mlp", "compression": "zip"}, "compression"),
        ({"algorithm": "mlp", "transmission": "mail"}, "transmission"),
        (
            {"algorithm": "mlp", "synchronization": "fsa", "transmission": "fifo + multigps"},
            "at=sites. needs 1 sites that accept",
        ),
        ({"algorithm": "mlp", "topology": {"roots": 1}}, "topology has"),
        ({"algorithm": "mlp", "hyperparameters": {"depth": 3}}, "hyperparameters has 'depth'; allowed"),
        ({"algorithm": "mlp", "hyperparameters": {"dropout": 1}}, "dropout is 1; allowed"),
        ({"algorithm": "mlp", "hyperparameters": {"hidden_size": 2.5}}, "hidden_size is 2.5; allowed"),
        ({"algorithm": "cnn", "hyperparameters": {"image_shape": [8]}}, "image_shape is .8.; allowed"),
        ({"algorithm": "mlp", "hyperparameters": {"learning_rate": 0}}, "learning_rate is 0; allowed"),
        ({"algorithm": "softmax_regression", "hyperparameters": {"weight_decay": -1}}, "weight_decay is -1"),
    ],
)  # fmt: skip
def test_a_wrong_option_is_named_with_what_is_allowed(options, said):
    with pytest.raises(InputError, match=said) as caught:
        GeoTableConfig(**options)
    assert "\n" not in str(caught.value)


def test_whole_numbers_that_kfp_made_floats_are_whole_again():
    config = GeoTableConfig(
        entry_point="m:f", hyperparameters={"width": 8.0, "rate": 0.5, "shape": [1.0, 2.0], "name": "a"}
    )
    given = config.build_arguments
    assert given == {"width": 8, "rate": 0.5, "shape": [1, 2], "name": "a"}
    assert isinstance(given["width"], int)
    assert all(isinstance(each, int) for each in given["shape"])


def test_the_two_tables_of_algorithms_name_the_same_arguments():
    import inspect

    assert set(ALGORITHMS) == set(HYPERPARAMETERS)
    for name, build in ALGORITHMS.items():
        _, _, *own = inspect.signature(build).parameters
        assert own == list(HYPERPARAMETERS[name])
