"""Every format gives the same rows, and every wrong input gives one line that says where."""

import gzip
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from geokfp.components._files import InputError
from geokfp.components.ingest.graph import NO_SPLIT, TEST, TRAIN, VALIDATION
from geokfp.components.shard.config import ShardConfig
from geokfp.components.shard.rows import Rows
from geokfp.components.shard.source import read_rows

TABLE = "town,label,split,x,y\nRome,cat,train,1,0.5\nOslo,dog,val,0,1\nRome,cat,test,-1,1e3\nOslo,dog,,0,0\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "rows.csv").write_text(TABLE)
    return tmp_path


def read(folder: Path, name: str = "rows.csv", **options) -> Rows:
    return read_rows(ShardConfig(table=str(folder / name), **options))


def same(one: Rows, other: Rows) -> bool:
    arrays = ("features", "labels", "split", "sites")
    names = ("label_names", "feature_names", "site_names", "warnings")
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in arrays) and all(
        getattr(one, name) == getattr(other, name) for name in names
    )


def test_names_and_numbers(folder: Path) -> None:
    rows = read(folder, site_column="town")
    assert rows.label_names == ("cat", "dog")
    assert rows.labels.tolist() == [0, 1, 0, 1]
    assert rows.split is not None
    assert rows.split.tolist() == [TRAIN, VALIDATION, TEST, NO_SPLIT]
    assert rows.site_names == ("Oslo", "Rome")
    assert rows.sites is not None
    assert rows.sites.tolist() == [1, 0, 1, 0]
    assert rows.feature_names == ("x", "y")
    assert rows.features.dtype == np.float32
    assert rows.features.tolist() == [[1, 0.5], [0, 1], [-1, 1000], [0, 0]]
    assert rows.warnings == ()


def test_columns_are_chosen(folder: Path) -> None:
    assert read(folder).warnings == ("Columns of text were not taken as features: town.",)
    chosen = read(folder, feature_columns=["y"], split_column="")
    assert (chosen.feature_names, chosen.split) == (("y",), None)
    regression = read(folder, task="regression", label_column="y", site_column="town")
    assert regression.labels.dtype == np.float32
    assert regression.labels.tolist() == [0.5, 1, 1000, 0]
    assert regression.label_names == ()
    assert regression.warnings == ("Columns of text were not taken as features: label.",)


def _gzip(folder: Path) -> str:
    (folder / "rows.csv.gz").write_bytes(gzip.compress((folder / "rows.csv").read_bytes()))
    return "rows.csv.gz"


def _parquet(folder: Path) -> str:
    frame = pd.read_csv(folder / "rows.csv", keep_default_na=False, na_values=[""])
    frame.astype({"label": "category"}).to_parquet(folder / "rows.parquet")
    return "rows.parquet"


def _windows(folder: Path) -> str:
    text = TABLE.replace("\n", "\r\n").replace("Oslo,dog,val", "\r\nOslo,dog,val")
    (folder / "windows.csv").write_bytes(b"\xef\xbb\xbf" + text.encode())
    return "windows.csv"


@pytest.mark.parametrize("write", [_gzip, _parquet, _windows])
def test_every_format_gives_the_same_rows(folder: Path, write) -> None:
    assert same(read(folder, site_column="town"), read(folder, write(folder), site_column="town"))


def test_whole_numbers_are_classes_and_sites_in_their_order(folder: Path) -> None:
    (folder / "rows.csv").write_text("label,site,x\n10,11,1\n-1,9,2\n9,9,3\n10,11,4\n-1,9,1\n9,9,0\n")
    rows = read(folder, site_column="site")
    assert rows.label_names == ("-1", "9", "10")
    assert rows.labels.tolist() == [2, 0, 1, 2, 0, 1]
    assert rows.site_names == ("9", "11")


def test_as_many_classes_as_rows_are_doubted(folder: Path) -> None:
    (folder / "rows.csv").write_text("label,x\n0.5,1\n0.7,2\n0.1,3\n")
    assert read(folder).warnings == ("3 rows have 3 classes: task 'regression' may be meant.",)


def test_a_table_longer_than_a_chunk_is_whole(folder: Path) -> None:
    from geokfp.components.ingest.tables import CHUNK_ROWS

    count = CHUNK_ROWS + 10
    lines = "\n".join(f"{i % 3},{i % 1000}" for i in range(count))
    (folder / "long.csv").write_text(f"label,x\n{lines}\n")
    rows = read(folder, "long.csv")
    assert np.array_equal(rows.features[:, 0], np.arange(count) % 1000)
    assert np.array_equal(rows.labels, np.arange(count) % 3)
    (folder / "long.csv").write_text(f"label,x\n{lines}\n1,\n")
    with pytest.raises(InputError, match=rf"long.csv:{count + 2}: column 'x': no value"):
        read(folder, "long.csv")


def test_an_unknown_format_is_named(folder: Path) -> None:
    (folder / "rows.csv").rename(folder / "rows.xls")
    with pytest.raises(
        InputError, match=r"rows\.xls: unknown format; allowed: \.csv, \.csv\.gz, \.parquet, "
    ):
        read(folder, "rows.xls")


WRONG: dict[str, tuple[str | None, dict[str, object], str]] = {
    "missing file": (None, {"name": "none.csv"}, "none.csv: no such file"),
    "a folder": (None, {"name": "."}, "is a folder, a file is needed"),
    "empty file": ("", {}, "rows.csv: the file is empty"),
    "header only": ("label,x\n", {}, "rows.csv: no rows; at least one is needed"),
    "no label column": (None, {"label_column": "class"}, "rows.csv: no column 'class'; it has town, label"),
    "no site column": (None, {"site_column": "city"}, "rows.csv: no column 'city'"),
    "no feature column": (None, {"feature_columns": ["z"]}, "rows.csv: no column 'z'"),
    "no number": (
        "label,town\n1,Rome\n2,Oslo\n",
        {},
        "rows.csv: no column is left for features beside label (town: text); add columns, or name them in",
    ),
    "no label": (TABLE.replace("dog,val", ",val"), {}, "rows.csv:3: column 'label': no value; every row"),
    "no site": (
        TABLE.replace("Oslo,dog,val", ",dog,val"),
        {"site_column": "town"},
        "rows.csv:3: column 'town': no value; every row needs a site",
    ),
    "a feature is text": (
        TABLE.replace("1e3", "tall"),
        {},
        "rows.csv:4: column 'y': 'tall' is not a finite number",
    ),
    "a feature is missing": (TABLE.replace("0.5", ""), {}, "rows.csv:2: column 'y': no value"),
    "a feature is infinite": (TABLE.replace("1e3", "-inf"), {}, "rows.csv:4: column 'y': '-inf' is not"),
    "a target is text": (
        TABLE,
        {"task": "regression"},
        "rows.csv:2: column 'label': 'cat' is not a finite number",
    ),
    "a target is missing": (
        "label,x\n1,1\n,2\n",
        {"task": "regression"},
        "rows.csv:3: column 'label': no value",
    ),
    "short row": ("label,x\n1,1\n2\n", {}, "rows.csv:3: 1 value, the header names 2 columns"),
    "ragged row": ("label,x\n1,1\n2,2,3\n", {}, "rows.csv:3: 3 values, the header names 2 columns"),
    "no split": (
        TABLE.replace(",val,", ",vla,"),
        {},
        "rows.csv:3: column 'split': 'vla' is no split; allowed: train, validation (val), test, none or",
    ),
    "one class": ("label,x\na,1\na,2\n", {}, "rows.csv: one class only ('a'); at least two are needed"),
    "not UTF-8": ("label,x\n\xe9,1\n", {}, "rows.csv:2: column 'label': not UTF-8 text (byte 0xe9)"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_named_in_one_line(folder: Path, name: str) -> None:
    text, options, message = WRONG[name]
    if text is not None:
        (folder / "rows.csv").write_bytes(text.encode("latin-1"))
    with pytest.raises(InputError) as caught:
        read(folder, **options)  # type: ignore[arg-type]
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
