"""`error.json`: why a step failed."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from geokfp.components._files import ArtifactError, InputError
from geokfp.components._launch import FailureRecord, ProcessFailed, failure_recorded, read_failures


def record_of(error: BaseException, folder: Path) -> FailureRecord:
    with pytest.raises(type(error)), failure_recorded("train_gnn", beside=folder / "step/model"):
        raise error
    (record,) = read_failures(folder)
    return record


def test_a_process_that_failed_is_named(tmp_path: Path) -> None:
    record = record_of(ProcessFailed("trainer-1", "killed by SIGKILL", ("a", "b")), tmp_path)
    assert record == FailureRecord(
        step="train_gnn", replica="trainer-1", cause="killed by SIGKILL", last_lines=("a", "b")
    )


def test_bad_input_is_its_one_line(tmp_path: Path) -> None:
    record = record_of(InputError("nodes.csv:3: no such column"), tmp_path)
    assert (record.cause, record.last_lines) == ("nodes.csv:3: no such column", ())


def test_any_other_error_is_named_and_located(tmp_path: Path) -> None:
    record = record_of(KeyError("nothing"), tmp_path)
    assert record.cause == "KeyError: 'nothing'"
    assert any("in record_of" in line for line in record.last_lines)


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(143)])
def test_an_end_from_outside_is_recorded(tmp_path: Path, error: BaseException) -> None:
    assert record_of(error, tmp_path).cause.startswith(type(error).__name__)


def test_an_older_record_does_not_outlive_a_good_run(tmp_path: Path) -> None:
    output = tmp_path / "model"
    with pytest.raises(InputError), failure_recorded("ingest_graph", beside=output):
        raise InputError("nodes.csv:3: no such column")
    with failure_recorded("ingest_graph", beside=output):
        pass
    assert read_failures(tmp_path) == []
    assert os.listdir(tmp_path) == []


def test_records_come_in_the_order_of_the_failures(tmp_path: Path) -> None:
    for i, step in enumerate(("second", "first")):
        with pytest.raises(InputError), failure_recorded(step, beside=tmp_path / step / "model"):
            raise InputError("bad")
        os.utime(tmp_path / step / "error.json", (100 - i, 100 - i))
    assert [record.step for record in read_failures(tmp_path)] == ["first", "second"]


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", '{"step": 1, "replica": "", "cause": "", "last_lines": []}']
)
def test_a_file_that_is_no_record_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "error.json").write_text(text)
    with pytest.raises(ArtifactError, match=r"error\.json: not a record of a failure"):
        read_failures(tmp_path)


def test_a_process_that_is_killed_leaves_a_record_too(tmp_path):
    code = (
        "import os, signal, sys\n"
        "from pathlib import Path\n"
        "from geokfp.components._launch import failure_recorded\n"
        "with failure_recorded('train_gnn', beside=Path(sys.argv[1])):\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, tmp_path / "model"], check=False)
    assert done.returncode == -signal.SIGKILL
    (record,) = read_failures(tmp_path)
    assert record.step == "train_gnn"
    assert "killed" in record.cause
