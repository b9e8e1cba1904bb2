"""Whole-or-nothing writes, manifests that notice every change, URIs."""

import io
import json
import os
import re
import sys
from pathlib import Path

import fsspec
import pytest
from geokfp.components._files import (
    ArtifactError,
    InputError,
    exists,
    local_file,
    local_path,
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


def _no_files(folder: Path) -> None:
    path = folder / "manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "files": None}))


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
        (_no_files, "lists no files"),
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


@pytest.mark.parametrize("name", ["a b.csv", "50%.csv", "ü#?.csv", "a%20b.csv"])
def test_a_file_uri_is_decoded_and_a_path_is_not(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text("id\n")
    for uri in (path.as_uri(), path.as_uri().replace("file://", "file://localhost"), str(path)):
        assert exists(uri)
        assert local_path(uri) == path
        with open_uri(uri) as handle:
            assert handle.read() == b"id\n"
        with local_file(uri) as local:
            assert local == path


class _Failing(fsspec.AbstractFileSystem):
    """Answers each path with the error that it names; `later` fails while it is read."""

    protocol = "failing"

    class NoCredentials(Exception):
        """What some library raises."""

    def _open(self, path: str, mode: str = "rb", **_: object) -> io.BufferedReader:
        error = {
            "denied": PermissionError(13, "not for you"),
            "away": ConnectionRefusedError(111, "Connection refused"),
            "slow": TimeoutError(),
            "strange": _Failing.NoCredentials("no key\nin sight"),
        }.get(path)
        if error is not None:
            raise error
        return _Later()  # type: ignore[return-value]

    def exists(self, path: str, **_: object) -> bool:
        return bool(self._open(path))


class _Later(io.BytesIO):
    def read(self, _: object = None) -> bytes:
        raise ConnectionResetError(104, "Connection reset by peer")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("denied", "permission denied"),
        ("away", "cannot be read (Connection refused)"),
        ("slow", "cannot be read (TimeoutError)"),
        ("strange", "cannot be read (NoCredentials: no key in sight)"),
        ("later", "cannot be read (Connection reset by peer)"),
    ],
)
def test_what_a_remote_file_system_raises_is_one_line_with_the_uri(name: str, message: str) -> None:
    fsspec.register_implementation("failing", _Failing, clobber=True)
    uri = f"failing://{name}"
    reads = [lambda: local_file(uri), lambda: open_uri(uri)]
    for read in reads:
        with pytest.raises(InputError) as caught, read() as found:
            found.read(1)
        assert str(caught.value) == f"{uri}: {message}"
    if name != "later":
        with pytest.raises(InputError, match=re.escape(message)):
            exists(uri)


@pytest.mark.parametrize(
    ("scheme", "library"), [("http", "aiohttp"), ("https", "aiohttp"), ("s3", "s3fs"), ("gs", "gcsfs")]
)
def test_a_library_that_is_not_installed_is_named(
    scheme: str, library: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    monkeypatch.delitem(
        sys.modules["fsspec.registry"]._registry, scheme, raising=False
    )  # where it was opened before
    monkeypatch.delitem(sys.modules, "fsspec.implementations.http", raising=False)
    uri = f"{scheme}://host/a.csv"
    told = f"{uri}: {scheme} needs a library that is not installed: pip install {library}"
    for read in (open_uri, local_file):
        with pytest.raises(InputError) as caught, read(uri):
            pass
        assert str(caught.value) == told
    with pytest.raises(InputError, match=re.escape(told)):
        exists(uri)


def test_what_the_reader_raises_stays_what_it_is(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id\n")
    for read in (open_uri, local_file):
        with pytest.raises(OSError, match="No space left"), read(str(tmp_path / "a.csv")):
            raise OSError(28, "No space left on device")


def test_a_local_file_that_cannot_be_read_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "closed").write_text("")
    cases = {
        str(tmp_path): "is a folder, a file is needed",
        str(tmp_path / "pipe"): "cannot be read (not an ordinary file)",
        str(tmp_path / ("x" * 300)): "cannot be read (File name too long)",
        "file://data/a.csv": "names the host 'data'; allowed: file:///absolute/path",
        str(tmp_path / "closed"): "permission denied",
    }

    def refuse(_: Path, mode: str) -> None:  # the tests may run as root, who may read all
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    for uri, message in cases.items():
        for read in (open_uri, local_file):
            with pytest.raises(InputError) as caught, read(uri):
                pass
            assert str(caught.value) == f"{uri}: {message}"
