"""Pods as processes: their own networks, failures told by the pods, and their end with a killed launcher."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from geokfp.components._files import InputError
from geokfp.components._launch import ProcessFailed
from geokfp.components._launch.as_processes import run_as_processes
from geokfp.components._launch.cluster import Placed
from geokfp.components._launch.hand_over import HandOver
from geokfp.components._launch.launch_options import LaunchOptions
from geokfp.components._launch.launch_step import Surroundings, run_launches
from geokfp.components._launch.pod_commands import pod_commands
from geokfp.components._launch.pod_network import can_be_apart
from geokfp.components._launch.pods import KINDS
from support.faults import wait_until
from support.pod_launches import every_setting
from support.pod_targets import hanging_launch, launch
from support.process_ends import all_gone, wait_until_gone

TESTS = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def targets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets the pods' processes import what they run."""
    monkeypatch.setenv("PYTHONPATH", str(TESTS))


def run(folder: Path, kind: str = "job", **body: object) -> list[str]:
    hand_over = HandOver(str(folder / "hand-over"))
    placed = Placed(launch=launch(folder, hand_over.uri, **body), kind=kind)
    options = LaunchOptions(launcher=kind, run_id="r")
    run_launches([(placed, hand_over)], options, Surroundings(run=run_as_processes))
    return sorted(path.name for path in (folder / "hand-over/told").iterdir())


@pytest.mark.parametrize("kind", ["jobset", "dgljob"])
def test_pods_of_each_way_to_tell_their_number_do_their_work(
    kind: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path, kind) == ["worker-0.json", "worker-1.json"]
    assert "worker/1: one: halfway" in capfd.readouterr().out


def test_networks_and_shared_memory_are_the_pods_own(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    if why := can_be_apart():
        pytest.skip(why)
    run(tmp_path, function="tell_surroundings")
    lines = capfd.readouterr().out.splitlines()
    assert [line.split(": ", 2)[2] for line in lines if "worker/" in line] == ["eth0 lo, 64 MB, empty"] * 2


def test_without_a_network_of_their_own_they_use_loopback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert run(tmp_path) == ["worker-0.json", "worker-1.json"]
    assert "that needs root" in capfd.readouterr().out


def test_what_pods_leave_in_temporary_folders_goes_with_them(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    run(tmp_path, function="tell_temporary")
    lines = [line for line in capfd.readouterr().out.splitlines() if "worker/" in line]
    folders = [Path(line.split(": ", 2)[2]) for line in lines]
    assert len(folders) == 2
    assert all("geokfp-pods-" in str(folder) and not folder.exists() for folder in folders)


def test_a_failed_pod_ends_the_others_and_tells_why_itself(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    with pytest.raises(ProcessFailed) as caught:
        run(tmp_path, function="fail_or_hang", arguments=["{index}", str(pids)])
    assert str(caught.value) == "worker/1/one: ValueError: the sky fell"
    assert "about to fail" in caught.value.last_lines
    assert pids.exists()
    wait_until_gone(pids)


def test_when_the_launcher_is_killed_the_pods_end_themselves(tmp_path: Path) -> None:
    launcher = subprocess.Popen(
        [sys.executable, str(TESTS / "support/pod_launcher.py"), str(tmp_path), "3"],
        env={**os.environ, "PYTHONPATH": str(TESTS)},
    )
    pids = [tmp_path / f"pids-{index}" for index in range(2)]
    try:
        wait_until(lambda: all(path.exists() for path in pids), "both pods to run", 50.0)
        assert not any(all_gone(path) for path in pids)
    finally:
        launcher.send_signal(signal.SIGKILL)
        launcher.wait()
    wait_until(lambda: all(all_gone(path) for path in pids), "the pods to end", 50.0)
    wait_until(
        lambda: len(list((tmp_path / "hand-over/failures").glob("*.json"))) == 2, "both to say why", 50.0
    )
    text = (tmp_path / "hand-over/failures/worker-0.json").read_text()
    assert "nobody has beaten" in text


def test_sigterm_ends_the_launcher_with_its_pods(tmp_path: Path) -> None:
    launcher = subprocess.Popen(
        [sys.executable, str(TESTS / "support/pod_launcher.py"), str(tmp_path), "50"],
        env={**os.environ, "PYTHONPATH": str(TESTS)},
    )
    pids = [tmp_path / f"pids-{index}" for index in range(2)]
    wait_until(lambda: all(path.exists() for path in pids), "both pods to run", 50.0)
    launcher.send_signal(signal.SIGTERM)
    assert launcher.wait(30) == 128 + signal.SIGTERM
    for path in pids:
        wait_until_gone(path)


@pytest.mark.parametrize("kind", KINDS)
def test_commands_and_variables_are_those_of_the_objects(kind: str, tmp_path: Path) -> None:
    commands = pod_commands(hanging_launch(tmp_path, "/data/$x", 3), kind, {})
    assert [command.name for command in commands] == ["worker/0", "worker/1"]
    assert {command.command for command in commands} == {("python3", "-m", "geokfp.components._launch.pod")}
    told = [command.environment["GEOKFP_INDEX"] for command in commands]
    assert told == ([command.host for command in commands] if kind == "dgljob" else ["0", "1"])
    assert all('"hand_over":"/data/$x"' in command.environment["GEOKFP_DOCUMENT"] for command in commands)


def test_what_only_the_cluster_knows_must_be_in_the_environment() -> None:
    with pytest.raises(InputError, match=r"env 'AWS_ACCESS_KEY_ID': comes from the cluster \(secretKeyRef\)"):
        pod_commands(every_setting(), "job", {})
    found = pod_commands(every_setting(), "job", {"AWS_ACCESS_KEY_ID": "key"})
    set_so = [command.environment for command in found if "AWS_REGION" in command.environment]
    assert set_so
    assert all(environment["AWS_ACCESS_KEY_ID"] == "key" for environment in set_so)
