"""Every wrong option is one line that says what is allowed."""

import pytest
from geokfp.components._files import InputError
from geokfp.components.shard.config import ShardConfig

IMAGES = {"images": "i.idx", "labels": "l.idx"}
COLUMN = {"table": "t.csv", "method": "by_column", "site_column": "town"}


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"table": "t.csv", "num_sites": 1},
        {**IMAGES, "scale_images": True},
        {"table": "t.npz", "scale_images": True},
        COLUMN,
        {**COLUMN, "num_sites": 0},
        {**COLUMN, "task": "regression"},
        {"num_sites": 3, "site_names": ["a", "b", "c c"], "method": "dirichlet", "alpha": 0.1},
        {"train_fraction": 1.0, "validation_fraction": 0.0},
        {"table": "t.csv", "feature_columns": ["x"], "split_column": "", "site_column": "town"},
    ],
)
def test_what_is_allowed_passes(options: dict[str, object]) -> None:
    assert ShardConfig(**options).seed == 0  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "even"}, "method is 'even'; allowed: iid, by_class, by_column, dirichlet"),
        ({"task": "ranking"}, "task is 'ranking'; allowed: classification, regression"),
        (
            {"task": "regression", "method": "dirichlet"},
            "method is 'dirichlet'; allowed with task 'regression': iid, by_column",
        ),
        ({"num_sites": 0}, "num_sites is 0; allowed: 1 or more"),
        ({**COLUMN, "num_sites": -1}, "num_sites is -1; allowed: 0 or more"),
        ({"alpha": 0.0}, "alpha is 0.0; allowed: 0.001 to 1e+06"),
        ({"alpha": float("nan")}, "alpha is nan; allowed: 0.001 to 1e+06"),
        ({"seed": -1}, "seed is -1; allowed: 0 to 2000000000"),
        ({"seed": 2**31}, "seed is 2147483648; allowed: 0 to 2000000000"),
        ({"images": "i.idx"}, "labels is empty but images is given; allowed: both, or neither"),
        ({"labels": "l.idx"}, "images is empty but labels is given; allowed: both, or neither"),
        ({**IMAGES, "table": "t.csv"}, "table is 't.csv'; allowed: '', since images are given"),
        (
            {**IMAGES, "method": "by_column", "site_column": "town"},
            "method is 'by_column' without a table; allowed: iid, by_class, dirichlet",
        ),
        ({"feature_columns": ["x"]}, "feature_columns is ['x']; allowed without columns: []"),
        (
            {"table": "t.npz", "feature_columns": ["x"]},
            "feature_columns is ['x']; allowed without columns: []",
        ),
        ({"scale_images": True}, "scale_images is True; allowed without images or an .npz: False"),
        ({"table": "t.csv", "scale_images": True}, "scale_images is True; allowed without images or an"),
        (
            {**COLUMN, "site_column": ""},
            "site_column is ''; allowed with method 'by_column': a column of the table",
        ),
        ({**COLUMN, "site_names": ["a", "b"]}, "allowed with method 'by_column': []"),
        ({"site_names": ["a"]}, "site_names is ['a']; allowed: 2 different names (num_sites is 2)"),
        ({"site_names": ["a", "a"]}, "site_names is ['a', 'a']; allowed: 2 different names"),
        ({"site_names": ["a", 1]}, "site_names is ['a', 1]; allowed: 2 different names"),
        ({"site_names": ["a", "b\nc"]}, "site_names is ['a', 'b\\nc']; allowed: 2 different names"),
        ({"train_fraction": 0.0}, "train_fraction is 0.0; allowed: more than 0, at most 1"),
        ({"train_fraction": 0.9}, "validation_fraction is 0.2; allowed: 0 to 0.1 (train_fraction is 0.9)"),
        ({"table": "t.csv", "label_column": ""}, "label_column is ''; allowed: a column of the table"),
        (
            {"table": "t.csv", "label_column": "split"},
            "split_column is 'split'; allowed: a column that label_column does not name",
        ),
        (
            {"table": "t.csv", "feature_columns": ["x", "label"]},
            "label_column is 'label'; allowed: a column that feature_columns does not name",
        ),
        ({"table": "t.csv", "feature_columns": ["x", "x"]}, "feature_columns is ['x', 'x']; allowed: diff"),
    ],
)
def test_wrong_options_name_what_is_allowed(options: dict[str, object], message: str) -> None:
    with pytest.raises(InputError) as caught:
        ShardConfig(**options)  # type: ignore[arg-type]
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
