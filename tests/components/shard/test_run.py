"""The shards artifact: what is written is what is drawn, reads back, and is whole or absent."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from geokfp.components._files import ArtifactError, InputError
from geokfp.components._launch import read_failures
from geokfp.components.ingest.graph import TEST, TRAIN, VALIDATION
from geokfp.components.shard import shards as module
from geokfp.components.shard.config import ShardConfig
from geokfp.components.shard.run import ShardResult, run
from geokfp.components.shard.shards import ArrayType, Shards, read_shards
from hypothesis import given, settings
from hypothesis import strategies as st
from support.component_call import call
from support.labelled_tables import digits, write_idx

ARRAYS = ("features", "labels", "rows", "split")


def sharded(folder: Path, **options) -> tuple[ShardResult, Shards]:
    outputs = {name: folder / "out" / name for name in ("shards", "report", "fingerprint")}
    result = run(ShardConfig(**options), **outputs)
    return result, read_shards(outputs["shards"])


def write_towns(folder: Path, rows: int = 60) -> str:
    lines = "\n".join(f"{'AB'[i % 7 < 3]},{'pqr'[i % 3]},{i},{-i}" for i in range(rows))
    (folder / "rows.csv").write_text(f"town,label,x,y\n{lines}\n")
    return str(folder / "rows.csv")


@settings(max_examples=20, deadline=None)
@given(
    count=st.integers(8, 60),
    num_sites=st.integers(1, 4),
    method=st.sampled_from(["iid", "by_class", "dirichlet"]),
    seed=st.integers(0, 5),
)
def test_every_row_is_in_exactly_one_shard_with_what_is_its_own(
    tmp_path_factory: pytest.TempPathFactory, count: int, num_sites: int, method: str, seed: int
) -> None:
    folder = tmp_path_factory.mktemp("shards")
    images, labels = digits(count)
    uris = write_idx(folder, images, labels, packed=bool(seed % 2))
    result, shards = sharded(folder, **uris, num_sites=num_sites, method=method, seed=seed)
    assert sorted(np.concatenate([site.rows() for site in shards.sites])) == list(range(count))
    for site in shards.sites:
        rows = site.rows()
        assert (np.diff(rows) > 0).all()
        assert np.array_equal(site.features(), images[rows])
        assert np.array_equal(site.labels(), labels[rows])
        codes = np.bincount(site.split(), minlength=4)
        assert codes.tolist() == [0, site.num_train, site.num_validation, site.num_test]
        assert site.num_train >= 1
        assert np.bincount(site.labels(), minlength=4).tolist() == list(site.class_counts)
        assert result.metrics[f"rows_{site.directory.name.replace('-', '_')}"] == site.num_rows == len(rows)
    assert shards.num_rows == count
    assert (
        np.sum([site.class_counts for site in shards.sites], axis=0).tolist()
        == np.bincount(labels, minlength=4).tolist()
    )


def test_the_schema_reads_back(tmp_path: Path) -> None:
    options = {"table": write_towns(tmp_path), "method": "by_column", "site_column": "town"}
    result, shards = sharded(tmp_path, **options)
    assert [site.name for site in shards.sites] == ["A", "B"]
    assert (shards.task, shards.method) == ("classification", "by_column")
    assert shards.label_names == ("p", "q", "r")
    assert shards.feature_names == ("x", "y")
    assert shards.feature_type == ArrayType(dtype="float32", shape=(2,))
    assert (shards.num_rows, shards.num_classes, shards.num_features) == (60, 3, 2)
    assert shards.fingerprint == result.fingerprint
    assert shards.fingerprint == (tmp_path / "out" / "fingerprint").read_text()
    for site in shards.sites:
        assert {int(x) % 7 < 3 for x in site.features()[:, 0]} == {site.name == "B"}
    assert result.metrics["num_sites"] == 2
    assert result.metrics["row_balance"] == pytest.approx(max(s.num_rows for s in shards.sites) / 30)


def test_regression_reads_back(tmp_path: Path) -> None:
    options = {"table": write_towns(tmp_path), "task": "regression", "label_column": "y"}
    result, shards = sharded(tmp_path, **options, num_sites=9)
    for site in shards.sites:
        assert site.labels().dtype == np.float32
        assert np.array_equal(site.labels(), -site.features()[:, 0])
        assert site.class_counts == ()
    assert 0 <= result.metrics["label_skew"] < 0.5
    assert result.metrics["num_classes"] == 0
    report = (tmp_path / "out" / "report").read_text()
    assert "<svg" in report
    assert "Deviation" in report
    assert "the first 8 sites" in report


def test_a_split_column_decides_and_sites_without_validation_are_named(tmp_path: Path) -> None:
    words = ["train", "train", "test", "val", "train", "test"]
    lines = "\n".join(f"{'ABAABB'[i]},{i % 2},{i},{word}" for i, word in enumerate(words))
    (tmp_path / "rows.csv").write_text(f"town,label,x,split\n{lines}\n")
    options = {"table": str(tmp_path / "rows.csv"), "method": "by_column", "site_column": "town"}
    _, shards = sharded(tmp_path, **options)
    assert [site.split().tolist() for site in shards.sites] == [
        [TRAIN, TEST, VALIDATION],
        [TRAIN, TRAIN, TEST],
    ]
    assert shards.warnings == ("No validation row at 1 of 2 sites: B.",)
    assert "No validation row at 1 of 2 sites: B." in (tmp_path / "out" / "report").read_text()
    (tmp_path / "rows.csv").write_text(f"town,label,x,split\n{lines.replace('A,0,0,train', 'A,0,0,none')}\n")
    with pytest.raises(
        InputError, match="none of the 3 rows of site 'A' is to train on; every site needs one"
    ):
        sharded(tmp_path, **options)


def test_the_drawing_shows_what_is_written(tmp_path: Path) -> None:
    _, shards = sharded(tmp_path, **write_idx(tmp_path, *digits()))
    root = shards.sites[0].directory.parent
    drawn = re.findall(r"^ {6,}([\w.-]+?)/? ", str(module.__doc__), re.MULTILINE)
    drawn += re.findall(r"^ {6}([\w.-]+)/$", str(module.__doc__), re.MULTILINE)
    assert {path.name for path in root.rglob("*")} == set(drawn)
    assert {path.name for path in shards.sites[0].directory.iterdir()} == {f"{name}.npy" for name in ARRAYS}


def test_nothing_of_a_site_lies_with_another(tmp_path: Path) -> None:
    images, labels = digits()
    _, shards = sharded(tmp_path, **write_idx(tmp_path, images, labels), num_sites=3)
    for site in shards.sites:
        held = b"".join(path.read_bytes() for path in sorted(site.directory.iterdir()))
        for row, image in enumerate(images):
            assert (image.tobytes() in held) == (row in site.rows())


def test_the_same_options_give_the_same_bytes(tmp_path: Path) -> None:
    uris = write_idx(tmp_path, *digits())
    found = {}
    for name, seed in (("a", 3), ("b", 3), ("c", 4)):
        result, shards = sharded(tmp_path / name, **uris, method="dirichlet", seed=seed)
        root = shards.sites[0].directory.parent
        files = {path.relative_to(root): path.read_bytes() for path in root.rglob("*") if path.is_file()}
        found[name] = (result.fingerprint, files)
    assert found["a"] == found["b"]
    assert found["a"][0] != found["c"][0]


def test_arrays_are_mapped_and_changes_stay_in_memory(tmp_path: Path) -> None:
    _, shards = sharded(tmp_path, **write_idx(tmp_path, *digits()))
    features = shards.sites[0].features()
    assert isinstance(features, np.memmap)
    before = features.copy()
    features[:] = 0
    assert np.array_equal(shards.sites[0].features(), before)
    read_shards(shards.sites[0].directory.parent)


def test_a_damaged_artifact_is_refused(tmp_path: Path) -> None:
    _, shards = sharded(tmp_path, **write_idx(tmp_path, *digits()))
    site = shards.sites[1]
    root = site.directory.parent
    manifest = json.loads((root / "manifest.json").read_text())
    np.save(site.directory / "labels.npy", np.zeros(site.num_rows))
    with pytest.raises(ArtifactError, match=r"site-1/labels.npy: checksum differs"):
        read_shards(root)
    unchecked = read_shards(root, verify=False).sites[1]
    with pytest.raises(ArtifactError, match=r"labels.npy: float64 \[20\], int64 \[20\] is needed"):
        unchecked.labels()
    np.save(site.directory / "rows.npy", np.zeros(3, np.int64))
    with pytest.raises(ArtifactError, match=r"rows.npy: int64 \[3\], int64 \[20\] is needed"):
        unchecked.rows()
    (site.directory / "split.npy").write_bytes(b"split")
    with pytest.raises(ArtifactError, match=r"split.npy: "):
        unchecked.split()
    for broken, message in (
        ({**manifest, "version": 9}, "version 9, this release reads 1"),
        ({**manifest, "kind": "geokfp.graph"}, "kind is 'geokfp.graph', 'geokfp.shards' is needed"),
        ({key: value for key, value in manifest.items() if key != "features"}, "lacks 'features'"),
    ):
        (root / "manifest.json").write_text(json.dumps(broken))
        with pytest.raises(ArtifactError, match=message):
            read_shards(root, verify=False)


def test_wrong_input_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none\.csv: no such file"):
        sharded(tmp_path, table=str(tmp_path / "none.csv"))
    assert list(tmp_path.iterdir()) == []


def test_the_example_needs_nothing(tmp_path: Path) -> None:
    result, shards = sharded(tmp_path)
    assert result.metrics["num_rows"] == 1797
    assert result.metrics["num_classes"] == 10
    assert result.metrics["num_features"] == 64
    assert [site.num_rows for site in shards.sites] == [899, 898]
    assert "built-in example" in shards.warnings[0]
    report = (tmp_path / "out" / "report").read_text()
    assert report.count("<svg") == 1
    assert "899" in report


def test_the_component_logs_metrics_or_leaves_the_cause_alone(tmp_path: Path) -> None:
    table = write_towns(tmp_path)
    assert call("shard_table", tmp_path / "done", table=table, num_sites=3)["rows_site_2"] == 20
    assert read_shards(tmp_path / "done" / "shards").num_rows == 60
    for index, (wrong, cause) in enumerate(
        (({"alpha": 0.0}, "alpha is 0.0; allowed: 0.001 to 1e+06"), ({"label_column": "z"}, "no column 'z'"))
    ):
        step = tmp_path / f"failed-{index}"
        with pytest.raises(InputError):
            call("shard_table", step, table=table, **wrong)
        assert [path.name for path in step.iterdir()] == ["error.json"]
        (record,) = read_failures(step)
        assert record.step == "shard_table"
        assert cause in record.cause


def test_mnist_is_sharded_by_class(tmp_path: Path, real_data: Path) -> None:
    folder = real_data / "mnist_10k"
    uris = {
        "images": str(folder / "t10k-images-idx3-ubyte.gz"),
        "labels": str(folder / "t10k-labels-idx1-ubyte.gz"),
    }
    fractions = {"train_fraction": 0.8, "validation_fraction": 0.0}
    result, shards = sharded(tmp_path, **uris, num_sites=5, method="by_class", **fractions)
    assert 8000 <= sum(site.num_train for site in shards.sites) < 8000 + len(shards.sites)
    assert {sum(count > 0 for count in site.class_counts) for site in shards.sites} == {2}
    assert result.metrics["row_balance"] < 1.02
    assert shards.feature_type == ArrayType(dtype="uint8", shape=(28, 28))
    assert result.metrics["label_skew"] == pytest.approx(0.8, abs=0.01)
