"""The artifact of predictions, written by a step or by its pods: read alike, and whole or not at all."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from fsspec.implementations.memory import MemoryFileSystem
from geokfp.components._files import Folder, InputError, read_manifest
from geokfp.components.training.predictions import (
    KIND,
    PREDICTIONS,
    GivenPart,
    complete,
    completed_or_removed,
    keep_judged,
    put_part,
    write_tables,
)


@pytest.fixture(params=["volume", "store"])
def uri(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    yield str(tmp_path / "shared/predictions") if request.param == "volume" else "memory://store/predictions"
    MemoryFileSystem.store.clear()


def table(first: int, labels: list[str | None]) -> pd.DataFrame:
    ids = np.arange(first, first + len(labels))
    return pd.DataFrame({"id": ids, "label": labels, "probability": np.full(len(ids), 0.5, np.float32)})


TABLES = [table(0, ["a", None]), table(2, [None, None]), table(4, []), table(4, ["b"])]


def test_what_pods_write_reads_as_what_a_step_writes(uri: str, tmp_path: Path) -> None:
    write_tables(tmp_path / "here", TABLES)
    with completed_or_removed(uri):
        told = [put_part(uri, number, each) for number, each in reversed(list(enumerate(TABLES)))]
        for number, part in enumerate(told):
            part.write(tmp_path / f"{number}.json")
        assert Folder(uri).read("manifest.json") is None
        complete(uri, [GivenPart.read(tmp_path / f"{number}.json") for number in range(len(told))])
    Folder(uri).fetch_artifact(tmp_path / "there")
    found = [read_manifest(tmp_path / name, kind=KIND, version=1) for name in ("here", "there")]
    assert [each["num_rows"] for each in found] == [5, 5]
    here, there = (pd.read_parquet(tmp_path / name / PREDICTIONS) for name in ("here", "there"))
    pd.testing.assert_frame_equal(here, there)
    assert list(here["id"]) == list(range(5))
    assert list(here["label"].isna()) == [False, True, True, True, False]


def test_a_failure_leaves_nothing_and_an_older_artifact_is_none_from_the_start(uri: str) -> None:
    with completed_or_removed(uri):
        complete(uri, [put_part(uri, 0, TABLES[0])])
    with pytest.raises(InputError, match="of a pod"), completed_or_removed(uri):
        assert Folder(uri).read("manifest.json") is None
        assert Folder(uri).names() == [PREDICTIONS]  # pods that are adopted may have written it already
        put_part(uri, 1, TABLES[0])
        raise InputError("of a pod")
    assert Folder(uri).names() == []


def test_without_a_place_that_pods_reach_nothing_is_done() -> None:
    with completed_or_removed(""):
        pass


def test_what_cannot_be_removed_hides_no_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(self: Folder) -> None:
        raise InputError(f"{self.uri}: permission denied")

    monkeypatch.setattr(Folder, "remove", refuse)
    with pytest.raises(InputError, match="of a pod"), completed_or_removed(str(tmp_path)):
        raise InputError("of a pod")
    assert "stays, and is not whole" in capsys.readouterr().out


def test_an_outcome_is_left_with_the_rows_that_metrics_need(tmp_path: Path) -> None:
    path = tmp_path / "outcome-0.npz"
    split = np.array([0, 3, 1, 0], np.int8)
    np.savez(path, split=split, labels=np.arange(4), logits=np.arange(8.0).reshape(4, 2))
    keep_judged(path)
    with np.load(path) as kept:
        assert list(kept["labels"]) == [1, 2]
        assert kept["logits"].tolist() == [[2.0, 3.0], [4.0, 5.0]]
