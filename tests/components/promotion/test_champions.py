"""The folder of champions: what lies where, one winner a generation, and records that make no sense."""

import json
import threading
from pathlib import Path

import pytest
from geokfp.components._files import ArtifactError
from geokfp.components.promotion.champions import Champions, Record, version_name
from support.challengers import challenger, exported


def record(generation: int, version: str = "v", window: str = "2026-11-01T00:00:00Z") -> Record:
    return Record(
        generation=generation, version=version, window=window, metric="accuracy", score=0.5, promoted="now"
    )


def test_the_folder_is_as_it_is_drawn(tmp_path: Path) -> None:
    champions = Champions(str(tmp_path / "kept"))
    assert champions.newest() is None
    trained, model = challenger(tmp_path, 2), exported(tmp_path)
    version = version_name("2026-11-29T00:00:00Z", trained, model)
    assert version.startswith("20261129T000000Z-")
    champions.put(version, trained, model)
    assert champions.claim(record(1, version))
    champions.point()
    files = {path.relative_to(tmp_path / "kept").as_posix() for path in (tmp_path / "kept").rglob("*.json")}
    assert files == {
        "champion.json",
        "generations/00000001.json",
        f"versions/{version}/trained/manifest.json",
        f"versions/{version}/trained/history.json",
        f"versions/{version}/exported/manifest.json",
        f"versions/{version}/exported/model_card.json",
    }
    document = json.loads((tmp_path / "kept/champion.json").read_text())
    assert document == json.loads((tmp_path / "kept/generations/00000001.json").read_text())
    assert document == {
        "kind": "geokfp.champion",
        "generation": 1,
        "version": version,
        "window": "2026-11-01T00:00:00Z",
        "metric": "accuracy",
        "score": 0.5,
        "promoted": "now",
    }
    assert (Path(champions.trained_uri(record(1, version))) / "weights.safetensors").is_file()


def test_a_version_is_named_by_what_it_holds(tmp_path: Path) -> None:
    first, second = challenger(tmp_path / "1", 2), challenger(tmp_path / "2", 3)
    model = exported(tmp_path)
    names = {version_name(window, path, model) for window in ("2026", "2027") for path in (first, second)}
    assert len(names) == 4
    assert version_name("2026", first, model) in names


def test_of_many_runs_one_claims_a_generation(tmp_path: Path) -> None:
    begin, won = threading.Barrier(6), []

    def claim(version: str) -> None:
        begin.wait(20)
        if Champions(str(tmp_path)).claim(record(1, version)):
            won.append(version)

    threads = [threading.Thread(target=claim, args=(f"v{index}",)) for index in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    newest = Champions(str(tmp_path)).newest()
    assert newest is not None
    assert won == [newest.version]


def test_the_newest_is_the_greatest_number_whatever_else_lies_there(tmp_path: Path) -> None:
    champions = Champions(str(tmp_path))
    for number in (9, 10, 2):
        champions.claim(record(number, f"v{number}"))
    (tmp_path / "generations/.00000011.json.partial").write_text("half")
    (tmp_path / "generations/notes.txt").write_text("")
    assert [each.generation for each in champions.records()] == [10, 9, 2]


def test_the_pointer_follows_a_promotion_that_comes_between(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    champions = Champions(str(tmp_path))
    champions.claim(record(1))
    read, seen = Champions.newest, []

    def newest(self: Champions) -> Record | None:
        found = read(self)
        if not seen:
            seen.append(found)
            Champions(str(tmp_path)).claim(record(2))
        return found

    monkeypatch.setattr(Champions, "newest", newest)
    champions.point()
    assert json.loads((tmp_path / "champion.json").read_text())["generation"] == 2


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "not the record of a champion"),
        ("[]", "not the record of a champion"),
        ('{"kind": "geokfp.graph"}', "kind is not 'geokfp.champion'"),
        ('{"kind": "geokfp.champion", "generation": 1}', "not the record of a champion"),
    ],
)
def test_a_record_that_cannot_be_understood_is_named(tmp_path: Path, text: str, told: str) -> None:
    (tmp_path / "generations").mkdir()
    (tmp_path / "generations/00000001.json").write_text(text)
    with pytest.raises(ArtifactError, match=rf"generations/00000001.json: {told}"):
        Champions(str(tmp_path)).newest()
