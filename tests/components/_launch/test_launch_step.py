"""What a step does around its pods: old failures are forgotten, and what was handed over is freed."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from geokfp.components._files import InputError
from geokfp.components._launch import ProcessFailed
from geokfp.components._launch.cluster import Placed
from geokfp.components._launch.failure import FailureRecord, to_json
from geokfp.components._launch.hand_over import HandOver
from geokfp.components._launch.launch_options import LaunchOptions
from geokfp.components._launch.launch_step import Surroundings, freed, run_launches
from support.pod_targets import launch

UNSEEN = "the image cannot be pulled"


def failure(cause: str) -> str:
    return to_json(FailureRecord(step="train_gnn", replica="worker/0/trainer", cause=cause))


def failed(folder: Path, in_the_pods: Callable[[], None]) -> ProcessFailed:
    """Returns the error of a launch whose pod 0 was seen to fail, after what happened in the pods."""
    hand_over = HandOver(str(folder))

    def run(*given: Any, **also_given: Any) -> None:
        in_the_pods()
        raise ProcessFailed("worker/0", UNSEEN)

    placed = Placed(launch=launch(folder, hand_over.uri), kind="job")
    with pytest.raises(ProcessFailed) as caught:
        run_launches([(placed, hand_over)], LaunchOptions(launcher="job", run_id="r"), Surroundings(run=run))
    return caught.value


def test_a_failure_is_not_told_with_the_cause_of_an_earlier_try(tmp_path: Path) -> None:
    hand_over = HandOver(str(tmp_path))
    hand_over.put_text("failures/worker-0.json", failure("the sky fell last time"))
    assert failed(tmp_path, lambda: None).cause == UNSEEN


def test_a_pod_of_this_try_knows_its_own_cause_best(tmp_path: Path) -> None:
    hand_over = HandOver(str(tmp_path))
    told = failed(tmp_path, lambda: hand_over.put_text("failures/worker-0.json", failure("the sky fell now")))
    assert (told.replica, told.cause) == ("worker/0/trainer", "the sky fell now")


def test_a_steps_run_is_that_of_its_pod_where_none_is_named() -> None:
    unnamed, here = LaunchOptions(launcher="job"), Surroundings(run_id="of-the-pod")
    assert here.in_run(unnamed) == LaunchOptions(launcher="job", run_id="of-the-pod")
    assert here.in_run(LaunchOptions(launcher="job", run_id="r")).run_id == "r"
    assert Surroundings().in_run(LaunchOptions()) == LaunchOptions()
    with pytest.raises(InputError, match="run_id '': must be given with launcher 'job'"):
        Surroundings().in_run(unnamed)


def test_what_was_handed_over_goes_after_a_failure_too(tmp_path: Path) -> None:
    hand_over = HandOver(str(tmp_path / "launch"))
    hand_over.put_text("given/job.json", "{}")
    with pytest.raises(ProcessFailed), freed(hand_over):
        raise ProcessFailed("worker/0", UNSEEN)
    assert not (tmp_path / "launch").exists()


class _Stubborn(HandOver):
    def remove(self) -> None:
        raise InputError("s3://b/k: cannot be removed (AccessDenied)")


def test_what_cannot_be_removed_hides_no_failure_and_spoils_no_success(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with freed(_Stubborn(str(tmp_path))):
        pass
    assert "what was handed over stays: s3://b/k: cannot be removed" in capsys.readouterr().out
    with pytest.raises(ProcessFailed, match=UNSEEN), freed(_Stubborn(str(tmp_path))):
        raise ProcessFailed("worker/0", UNSEEN)
