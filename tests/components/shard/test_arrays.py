"""Rows from `x` and `y` of an `.npz`, and what is wrong with others."""

from pathlib import Path

import numpy as np
import pytest
from geokfp.components._files import InputError
from geokfp.components.ingest.graph import TEST, TRAIN
from geokfp.components.shard.config import ShardConfig
from geokfp.components.shard.rows import Rows
from geokfp.components.shard.source import read_rows

X = np.arange(24, dtype=np.float64).reshape(4, 2, 3)
Y = [0, 1, 1, 0]
WORDS = ["train", "train", "test", "test"]


def read(folder: Path, arrays: dict[str, object], **options) -> Rows:
    np.savez(folder / "rows.npz", **arrays)
    return read_rows(ShardConfig(table=str(folder / "rows.npz"), **options))


@pytest.mark.parametrize("kind", ["float64", "float16", "int32", "bool", "uint8"])
def test_bytes_are_kept_and_other_numbers_become_single(tmp_path: Path, kind: str) -> None:
    rows = read(tmp_path, {"x": X.astype(kind), "y": Y})
    assert rows.features.shape == (4, 2, 3)
    assert rows.features.dtype == ("uint8" if kind == "uint8" else "float32")
    assert np.array_equal(rows.features, X.astype(kind))
    assert rows.labels.tolist() == Y


def test_bytes_are_scaled_when_asked(tmp_path: Path) -> None:
    rows = read(tmp_path, {"x": (10 * X).astype(np.uint8), "y": Y}, scale_images=True)
    assert np.array_equal(rows.features, (10 * X / 255).astype(np.float32))
    with pytest.raises(InputError, match="scale_images is True; allowed with float32 features: False"):
        read(tmp_path, {"x": X, "y": Y}, scale_images=True)


@pytest.mark.parametrize(
    ("labels", "names", "numbers"),
    [
        ([7, -1, -1, 7], ("-1", "7"), [1, 0, 0, 1]),
        ([[3.0], [2.0], [2.0], [3.0]], ("2", "3"), [1, 0, 0, 1]),
        ([True, False, True, False], ("0", "1"), [1, 0, 1, 0]),
        (["10", "9", "9", "10"], ("9", "10"), [1, 0, 0, 1]),
        (["b", "a", "a", "b"], ("a", "b"), [1, 0, 0, 1]),
    ],
)
def test_labels_are_named(tmp_path: Path, labels: list[object], names: tuple[str, ...], numbers) -> None:
    rows = read(tmp_path, {"x": X, "y": labels})
    assert rows.label_names == names
    assert rows.labels.tolist() == numbers


def test_arrays_may_name_splits_and_sites(tmp_path: Path) -> None:
    rows = read(tmp_path, {"x": X, "y": Y, "split": WORDS, "town": ["b", "b", "a", "a"]}, site_column="town")
    assert rows.split is not None
    assert rows.split.tolist() == [TRAIN, TRAIN, TEST, TEST]
    assert rows.site_names == ("a", "b")
    assert rows.sites is not None
    assert rows.sites.tolist() == [1, 1, 0, 0]


def test_regression_takes_any_number(tmp_path: Path) -> None:
    rows = read(tmp_path, {"x": X, "y": [0.5, -2, 1, 0]}, task="regression")
    assert rows.labels.dtype == np.float32
    assert rows.labels.tolist() == [0.5, -2, 1, 0]


@pytest.mark.parametrize(
    ("changed", "options", "message"),
    [
        ({"x": None}, {}, "no array 'x'; x and y are needed, it has y"),
        ({"y": None}, {}, "no array 'y'; x and y are needed, it has x"),
        ({"x": np.ones(4)}, {}, "x has shape [4]; [rows, ...] is needed"),
        ({"x": np.ones((0, 2)), "y": []}, {}, "x has shape [0, 2]; at least one row and one feature are"),
        ({"x": np.ones((4, 0))}, {}, "x has shape [4, 0]; at least one row and one feature are needed"),
        ({"x": [["a"]] * 4}, {}, "x has type <U1; numbers are needed"),
        ({"x": np.full((4, 2), 1j)}, {}, "x has type complex128; numbers are needed"),
        ({"x": np.where(X == 9, np.nan, X)}, {}, "x: row 1, column 3 is not a finite number"),
        ({"x": X * 1e39}, {}, "x: row 0, column 1 is not a finite number"),
        ({"x": np.array([[{}]] * 4)}, {}, "holds pickled Python objects, which are not read"),
        ({"y": [0, 1, 1]}, {}, "y has shape [3]; [4] is needed, one a row of x"),
        ({"y": np.ones((4, 2))}, {}, "y has shape [4, 2]; [4] is needed, one a row of x"),
        ({"y": [0.5, 1, 1, 0]}, {}, "y has type float64 and is not whole; whole numbers or strings"),
        ({"y": [np.nan, 1, 1, 0]}, {}, "y has type float64 and is not whole"),
        ({"y": ["a", " ", "b", "a"]}, {}, "y: row 1 is empty; every row needs a label"),
        ({"y": [1, 1, 1, 1]}, {}, "one class only ('1'); at least two are needed"),
        ({"y": ["a", "b", "b", "a"]}, {"task": "regression"}, "y has type <U1; numbers are needed for task"),
        ({"y": [np.inf, 1, 1, 0]}, {"task": "regression"}, "y: row 0, column 0 is not a finite number"),
        ({}, {"site_column": "town"}, "no array 'town'; it has x, y"),
        ({"town": ["a"]}, {"site_column": "town"}, "town has shape [1]; [4] is needed, one a row of x"),
        ({"town": ["a", "", "b", "b"]}, {"site_column": "town"}, "town: row 1 is empty; every row needs a"),
        ({"split": ["train", "tran", "", "test"]}, {}, "split: row 1: 'tran' is no split; allowed: train"),
        ({"split": ["train"]}, {}, "split has shape [1]; [4] is needed, one a row of x"),
    ],
)
def test_what_is_wrong_is_named_in_one_line(
    tmp_path: Path, changed: dict[str, object], options: dict[str, object], message: str
) -> None:
    arrays = {name: array for name, array in ({"x": X, "y": Y} | changed).items() if array is not None}
    with pytest.raises(InputError) as caught:
        read(tmp_path, arrays, **options)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    read(tmp_path, {"x": X, "y": Y})
    path = tmp_path / "rows.npz"
    path.write_bytes(path.read_bytes()[:300])
    with pytest.raises(InputError, match=r"rows\.npz: not a numpy file"):
        read_rows(ShardConfig(table=str(path)))
