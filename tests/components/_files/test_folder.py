"""A folder on a volume and one in an object store behave alike, also where several write at once."""

import errno
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from fsspec.implementations.memory import MemoryFileSystem
from geokfp.components._files import ArtifactError, Folder, InputError, read_manifest, write_manifest
from support.challengers import object_store

# The client of the object store closes its sockets when it is collected.
pytestmark = pytest.mark.filterwarnings(
    "ignore:unclosed:ResourceWarning", "ignore::DeprecationWarning:boto.*"
)


@pytest.fixture(params=["volume", "file URI", "store"])
def uri(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    if request.param == "store":
        with object_store(monkeypatch) as bucket:
            yield f"{bucket}/deep/er"
    else:
        yield f"{'file:' if 'URI' in request.param else ''}{tmp_path}/deep/er"


def artifact(path: Path, text: str) -> Path:
    (path / "in").mkdir(parents=True)
    (path / "in/a").write_text(text)
    write_manifest(path, kind="thing", version=1, body={"of": text})
    return path


def test_files_are_created_once_replaced_and_listed(uri: str) -> None:
    folder = Folder(uri + "/")
    assert folder.names() == []
    assert folder.read("a") is None
    assert folder.create("a", b"1")
    assert not folder.create("a", b"2")
    folder.replace("b", b"3")
    folder.replace("b", b"4")
    assert (folder.read("a"), folder.read("b")) == (b"1", b"4")
    assert folder.within("c").create("d", b"5")
    assert folder.names() == ["a", "b", "c"]


def test_of_many_that_create_at_once_one_succeeds(uri: str) -> None:
    won: list[str] = []
    begin = threading.Barrier(8)

    def create(name: str) -> None:
        begin.wait(20)
        if Folder(uri).create("only", name.encode()):
            won.append(name)

    threads = [threading.Thread(target=create, args=(f"number {index}",)) for index in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(won) == 1
    assert Folder(uri).read("only") == won[0].encode()
    assert Folder(uri).names() == ["only"]


def test_parts_of_files_are_read_and_files_discarded(uri: str) -> None:
    folder = Folder(uri)
    folder.discard("a")
    folder.replace("a", b"0123456789")
    assert (folder.read_range("a", 2, 5), folder.read_range("a", 8, 20)) == (b"234", b"89")
    folder.discard("a")
    assert folder.read("a") is None
    with pytest.raises(InputError, match="deep/er/a: no such file"):
        folder.read_range("a", 0, 1)


def test_of_another_artifact_the_manifest_goes_first(
    uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Folder(uri).within("artifact")
    folder.put_artifact(artifact(tmp_path / "first", "one"))

    def fail(self: Folder, source: Path, name: str) -> None:
        raise InputError("the disk is full")

    monkeypatch.setattr(Folder, "put_file", fail)
    with pytest.raises(InputError, match="full"):
        folder.put_artifact(artifact(tmp_path / "second", "two"))
    assert folder.read("manifest.json") is None
    assert folder.read("in/a") == b"one"


def test_an_artifact_comes_back_whole_and_an_equal_one_is_left(uri: str, tmp_path: Path) -> None:
    first = artifact(tmp_path / "first", "one")
    folder = Folder(uri).within("artifact")
    folder.put_artifact(first)
    folder.fetch_artifact(tmp_path / "back")
    assert read_manifest(tmp_path / "back", kind="thing", version=1)["of"] == "one"
    folder.replace("in/a", b"kept")
    folder.put_artifact(first)
    assert folder.read("in/a") == b"kept"


def test_what_is_no_whole_artifact_is_refused(uri: str, tmp_path: Path) -> None:
    folder = Folder(uri)
    with pytest.raises(
        ArtifactError, match=r"er/manifest.json: no such file; an artifact's folder is needed"
    ):
        folder.fetch_artifact(tmp_path / "back")
    folder.replace("manifest.json", b'{"files": {"a": ""}}')
    with pytest.raises(ArtifactError, match=r"er/a: listed in manifest.json but missing"):
        folder.fetch_artifact(tmp_path / "back")
    for name in ("../a", "/a", "b/../../a"):
        folder.replace("manifest.json", b'{"files": {"%s": ""}}' % name.encode())
        with pytest.raises(ArtifactError, match=rf"lists '{name}'; allowed: files in its folder"):
            folder.fetch_artifact(tmp_path / "back")
    for text in (b"{", b"[]", b'{"files": []}'):
        folder.replace("manifest.json", text)
        with pytest.raises(ArtifactError, match=r"er/manifest.json: (not JSON|lists no files)"):
            folder.fetch_artifact(tmp_path / "back")
    assert not (tmp_path / "back").exists()


@pytest.mark.parametrize("number", [errno.EBUSY, errno.EACCES])
def test_a_store_that_is_being_written_to_by_another_has_not_written(
    monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(number, "refused")

    monkeypatch.setattr(MemoryFileSystem, "pipe_file", refuse)
    if number == errno.EBUSY:
        assert not Folder("memory://kept").create("a", b"")
    else:
        with pytest.raises(InputError, match="memory://kept/a: permission denied"):
            Folder("memory://kept").create("a", b"")


def test_a_store_that_is_not_there_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"file/x/a: cannot be written \(Not a directory\)"):
        Folder(f"{tmp_path}/file/x").create("a", b"")
    with pytest.raises(InputError, match=r"nowhere://x/a: .*Protocol not known"):
        Folder("nowhere://x").read("a")
