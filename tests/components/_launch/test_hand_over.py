"""The hand-over: files and folders on a path and in an object store, and the beat."""

import uuid
from collections.abc import Iterator
from pathlib import Path

import fsspec
import pytest
from geokfp.components._files import InputError
from geokfp.components._files.uri import is_object_store
from geokfp.components._launch.hand_over import HandOver, Silence
from support.clock import FakeClock


@pytest.fixture(params=["path", "file", "memory"])
def uri(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Names a folder of each kind of store; memory stands for a remote one."""
    if request.param == "path":
        yield str(tmp_path / "hand over")
    elif request.param == "file":
        yield f"file://{tmp_path}/hand-over"
    else:
        yield f"memory://{uuid.uuid4().hex}"
        fsspec.filesystem("memory").store.clear()


def test_files_and_folders_come_back_as_they_were(uri: str, tmp_path: Path) -> None:
    hand_over = HandOver(uri)
    source = tmp_path / "source"
    (source / "part-0").mkdir(parents=True)
    (source / "part-0" / "graph").write_bytes(b"\0graph")
    (source / "part-1").mkdir()
    (source / "part-1" / "graph").write_bytes(b"other")
    (source / "manifest.json").write_text("{}")

    assert hand_over.list_of("partitions") is None
    hand_over.put_folder(source, "partitions")
    assert hand_over.list_of("partitions") == ["manifest.json", "part-0/graph", "part-1/graph"]
    hand_over.get_folder("partitions", tmp_path / "all")
    hand_over.get_folder("partitions", tmp_path / "own", only=("part-1/", "manifest"))

    assert (tmp_path / "all/part-0/graph").read_bytes() == b"\0graph"
    own = sorted(path.relative_to(tmp_path / "own").as_posix() for path in (tmp_path / "own").rglob("*"))
    assert own == ["manifest.json", "part-1", "part-1/graph"]

    hand_over.put_file(source / "manifest.json", "deep/er/manifest")
    hand_over.get_file("deep/er/manifest", tmp_path / "deep/manifest")
    assert (tmp_path / "deep/manifest").read_text() == "{}"
    assert hand_over.inside("deep").get_text("er/manifest") == "{}"


def test_what_is_removed_is_gone_and_may_be_removed_again(uri: str) -> None:
    hand_over = HandOver(uri)
    hand_over.put_text("a/b", "text")
    hand_over.remove()
    hand_over.remove()
    assert hand_over.get_text("a/b") is None


def test_a_folder_that_is_there_is_written_again_only_when_that_is_asked(uri: str, tmp_path: Path) -> None:
    (tmp_path / "source").mkdir()
    file = tmp_path / "source/file"
    file.write_text("first")
    hand_over = HandOver(uri)
    hand_over.put_folder(tmp_path / "source", "folder")
    file.write_text("second")
    hand_over.put_folder(tmp_path / "source", "folder")
    assert hand_over.get_text("folder/file") == "first"
    hand_over.put_folder(tmp_path / "source", "folder", anew=True)
    assert hand_over.get_text("folder/file") == "second"


def test_what_is_not_there_is_named(uri: str, tmp_path: Path) -> None:
    hand_over = HandOver(uri)
    assert hand_over.get_text("absent") is None
    with pytest.raises(InputError, match="absent: no such file"):
        hand_over.get_file("absent", tmp_path / "target")
    with pytest.raises(InputError, match="has no folder 'absent'"):
        hand_over.get_folder("absent", tmp_path / "target")
    assert not (tmp_path / "target").exists()


def test_silence_is_counted_by_the_listeners_clock_alone(uri: str) -> None:
    speaks, listens = FakeClock(), FakeClock()
    speaks.advance(1e6)
    launcher, pod = HandOver(uri, clock=speaks), HandOver(uri, clock=listens)
    listens.advance(7)
    assert pod.silent_for_s() == 7
    launcher.beat()
    assert pod.silent_for_s() == 0
    listens.advance(3)
    launcher.beat()  # too early to be written
    assert pod.silent_for_s() == 3
    speaks.advance(1)
    launcher.beat()
    assert pod.silent_for_s() == 0


def test_a_launcher_that_starts_again_is_heard_at_once(uri: str) -> None:
    clock = FakeClock()
    pod = HandOver(uri, clock=clock)
    HandOver(uri, clock=clock).beat()
    pod.silent_for_s()
    clock.advance(50)
    HandOver(uri, clock=clock).beat()
    assert pod.silent_for_s() == 0


def test_what_cannot_be_read_counts_as_silent() -> None:
    silence = Silence(10.0)
    assert silence.after("1", 11.0) == 0
    assert silence.after(None, 15.0) == 4
    assert silence.after("1", 17.0) == 6
    assert silence.after("2", 18.0) == 0


def test_minio_needs_its_address(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(InputError, match=r"minio://bucket/x: minio:// needs the address .* AWS_ENDPOINT_URL"):
        HandOver("minio://bucket/x")


def test_minio_is_s3_at_its_address(bucket: str, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder/file").write_bytes(b"content")
    hand_over = HandOver(f"minio://{bucket}/run/hand-over")
    assert hand_over.silent_for_s() >= 0
    hand_over.beat()
    hand_over.put_folder(tmp_path / "folder", "folder")
    other = HandOver(f"s3://{bucket}/run").inside("hand-over")
    other.get_folder("folder", tmp_path / "fetched")
    assert (tmp_path / "fetched/file").read_bytes() == b"content"
    assert (other.get_text("beat") or "").startswith("1 ")
    hand_over.remove()
    assert other.list_of("folder") is None


def test_a_scheme_that_is_not_known_is_named() -> None:
    with pytest.raises(InputError, match="nosuch://x"):
        HandOver("nosuch://x").beat()


def test_which_uris_every_machine_reaches() -> None:
    assert [is_object_store(uri) for uri in ("s3://b/k", "minio://b", "gs://b", "/data", "file:///data")] == [
        True,
        True,
        True,
        False,
        False,
    ]
