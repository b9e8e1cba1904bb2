"""Whole-or-nothing writes, manifests that notice every change, URIs."""

import json
from pathlib import Path

import fsspec
import pytest
from geokfp.components._files import (
    ArtifactError,
    InputError,
    exists,
    local_file,
    new_directory,
    new_file,
    open_uri,
    read_manifest,
    write_manifest,
)


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    target = tmp_path / "out" / "a.txt"
    with new_file(target) as temporary:
        temporary.write_text("old")
    with pytest.raises(RuntimeError), new_file(target) as temporary:
        temporary.write_text("half")
        raise RuntimeError
    assert target.read_text() == "old"
    assert [path.name for path in target.parent.iterdir()] == ["a.txt"]


def test_a_failed_folder_leaves_the_old_folder_and_nothing_else(tmp_path: Path) -> None:
    target = tmp_path / "artifact"
    with new_directory(target) as folder:
        (folder / "a").write_text("old")
    with pytest.raises(RuntimeError), new_directory(target) as folder:
        (folder / "b").write_text("half")
        raise RuntimeError
    assert [path.name for path in target.iterdir()] == ["a"]
    assert [path.name for path in tmp_path.iterdir()] == ["artifact"]


def test_a_new_folder_replaces_an_older_one_as_a_whole(tmp_path: Path) -> None:
    target = tmp_path / "artifact"
    for name in ("a", "b"):
        with new_directory(target) as folder:
            (folder / name).write_text(name)
    assert [path.name for path in target.iterdir()] == ["b"]


@pytest.fixture
def artifact(tmp_path: Path) -> Path:
    folder = tmp_path / "artifact"
    (folder / "part-0").mkdir(parents=True)
    (folder / "part-0" / "data.bin").write_bytes(b"1234")
    write_manifest(folder, kind="test.kind", version=2, body={"answer": 42})
    return folder


def test_manifest_reads_back(artifact: Path) -> None:
    document = read_manifest(artifact, kind="test.kind", version=2)
    assert document["answer"] == 42
    assert list(document["files"]) == ["part-0/data.bin"]


def _alter(folder: Path) -> None:
    (folder / "part-0" / "data.bin").write_bytes(b"1235")


def _remove(folder: Path) -> None:
    (folder / "part-0" / "data.bin").unlink()


def _other_version(folder: Path) -> None:
    path = folder / "manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "version": 3}))


def _not_json(folder: Path) -> None:
    (folder / "manifest.json").write_text("{")


def _no_manifest(folder: Path) -> None:
    (folder / "manifest.json").unlink()


def _other_json(folder: Path) -> None:
    (folder / "manifest.json").write_text("[1]")


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (_alter, "data.bin: checksum differs"),
        (_remove, "data.bin: listed in manifest.json but missing"),
        (_other_version, "version 3, this release reads 2"),
        (_not_json, "not JSON"),
        (_no_manifest, "a test.kind artifact is needed"),
        (_other_json, "kind is 'list'"),
    ],
)
def test_a_damaged_artifact_is_named(artifact: Path, damage, message: str) -> None:
    damage(artifact)
    with pytest.raises(ArtifactError, match=message) as caught:
        read_manifest(artifact, kind="test.kind", version=2)
    assert "\n" not in str(caught.value)


def test_another_kind_is_refused(artifact: Path) -> None:
    with pytest.raises(ArtifactError, match=r"kind is 'test.kind', 'other' is needed"):
        read_manifest(artifact, kind="other", version=2)


def test_remote_uri_is_read_like_a_local_one(tmp_path: Path) -> None:
    with fsspec.open("memory://folder/a.csv", "wb") as handle:
        handle.write(b"id\n1\n")
    (tmp_path / "a.csv").write_bytes(b"id\n1\n")
    for uri in ("memory://folder/a.csv", str(tmp_path / "a.csv"), f"file://{tmp_path}/a.csv"):
        assert exists(uri)
        with open_uri(uri) as handle:
            assert handle.read() == b"id\n1\n"
        with local_file(uri) as path:
            assert path.name == "a.csv"
            assert path.read_bytes() == b"id\n1\n"


@pytest.mark.parametrize("uri", ["nowhere.csv", "file:///nowhere.csv", "memory://nowhere.csv", "what://x"])
def test_what_cannot_be_read_is_named(uri: str) -> None:
    with pytest.raises(InputError, match=uri.split("/")[0]), local_file(uri):
        pass
