"""The one line that says why a run failed."""

from contextlib import suppress
from pathlib import Path

import pytest
from geokfp.components._files import InputError
from geokfp.components._launch import ProcessFailed, failure_recorded
from geokfp.pipelines import _command_line, compiled_package
from geokfp.pipelines._command_line.failure import describe_failure, last_error
from geokfp.pipelines._command_line.package import read_package
from support.typed_commands import Ended, typed_command

PACKAGE = read_package(compiled_package("cross_site"))


@pytest.mark.parametrize(
    ("cause", "last_line", "told"),
    [
        ("ValueError: no", "a.b_c.ValueError: no", "ValueError: no"),
        ("ended with status 1", "a.ValueError: no", "ended with status 1; it last printed: ValueError: no"),
        ("ended with status 1", "see a.b for more", "ended with status 1; it last printed: see a.b for more"),
    ],
)
def test_a_cause_is_told_once_and_without_modules(
    tmp_path: Path, cause: str, last_line: str, told: str
) -> None:
    step = tmp_path / "run" / "train"
    step.mkdir(parents=True)
    with suppress(ProcessFailed), failure_recorded("train_gnn", beside=step / "model"):
        raise ProcessFailed("site-0/trainer-0", cause, (last_line,))
    told_now = describe_failure(PACKAGE, tmp_path, {"train_gnn": 1.0}, tmp_path / "log.txt")
    assert told_now == f"train_gnn (site-0/trainer-0) failed: {told}"


def test_an_option_has_the_name_that_the_pipeline_gives_it(tmp_path: Path) -> None:
    step = tmp_path / "run" / "partition"
    step.mkdir(parents=True)
    with suppress(InputError), failure_recorded("partition_graph", beside=step / "partitions"):
        raise InputError("num_parts is 9 but site 'ber' has 4 training nodes")
    told = describe_failure(PACKAGE, tmp_path, {"partition_graph": 1.0}, tmp_path / "log.txt")
    assert told == "partition_graph failed: workers_per_site is 9 but site 'ber' has 4 training nodes"


def test_an_error_that_no_step_recorded_is_found_in_the_log(tmp_path: Path) -> None:
    log = tmp_path / "log.txt"
    log.write_text("Traceback (most recent call last):\n    a.errors.InputError: batch_size 0: too few\n")
    told = describe_failure(PACKAGE, tmp_path, {"train_gnn": 1.0}, log)
    assert told == f"train_gnn failed: InputError: batch_size 0: too few; see {log}"


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        (["ValueError: first", "a.b.KeyError: 'x'", "I1130 main.go:66] exit status 1"], "KeyError: 'x'"),
        (
            ["geokfp.components._launch.errors.ProcessFailed: trainer-1: killed"],
            "ProcessFailed: trainer-1: killed",
        ),
        (["requests.exceptions.ConnectionError: refused"], "ConnectionError: refused"),
        (["epoch 3: loss 0.5", "geokfp: done", "see geokfp.components: it is there"], ""),
        ([], ""),
    ],
)
def test_the_last_error_of_a_log(lines: list[str], told: str) -> None:
    assert last_error(lines) == told


def test_what_should_not_be_is_told_with_how_to_see_where(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    geokfp = typed_command(monkeypatch, capsys)
    assert geokfp("--verbose", "list").status == 0

    def broken(**given: object) -> None:
        raise ZeroDivisionError("no such number")

    monkeypatch.setattr(_command_line, "app", broken)
    hint = "geokfp: ZeroDivisionError: no such number (`geokfp --verbose ...` shows where)\n"
    assert geokfp("list") == Ended(1, "", hint)
    told = geokfp("--verbose", "list").err
    assert told.startswith("Traceback")
    assert told.endswith(hint)
