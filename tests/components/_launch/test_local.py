"""The supervisor, with real processes killed for real."""

import os
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

import psutil
import pytest
from geokfp.components._files import InputError
from geokfp.components._launch import (
    Job,
    ProcessFailed,
    Replica,
    Role,
    failure_recorded,
    read_failures,
    run_job,
)

TESTS = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def _importable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(TESTS))


def role(
    function: str, *arguments: str, name: str = "", count: int = 1, finishes: bool = True, **environment: str
):
    name = name or function
    replicas = tuple(
        Replica(name=f"{name}-{i}", arguments=arguments, environment=environment) for i in range(count)
    )
    return Role(name=name, target=f"support.launch_targets:{function}", replicas=replicas, finishes=finishes)


def job(*roles: Role, deadline_s: float = 50, prefixes: tuple[str, ...] = ()) -> Job:
    return Job(name="test", roles=roles, deadline_s=deadline_s, shared_memory_prefixes=prefixes)


def wait_until(condition, what: str) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline, f"waited 30 s for {what}"
        time.sleep(0.02)


def gone(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def test_runs_with_arguments_and_environment(tmp_path: Path) -> None:
    run_job(job(role("touch", str(tmp_path / "made"), GREETING="hello")), log_folder=tmp_path / "logs")
    assert (tmp_path / "made").read_text() == "hello"


def test_progress_is_passed_on_and_chatter_is_not(tmp_path: Path) -> None:
    lines: list[tuple[str, str]] = []
    run_job(job(role("tell", count=2)), log_folder=tmp_path, on_line=lambda *line: lines.append(line))
    assert sorted(lines) == [("tell-0", "halfway"), ("tell-1", "halfway")]
    assert "chatter" in (tmp_path / "tell-0.log").read_text()


@pytest.mark.parametrize(
    ("function", "arguments", "cause"),
    [
        ("fail", (), "ValueError: the sky fell"),
        ("leave", ("7",), "ended with exit status 7"),
        ("die_by_signal", (), "killed by SIGKILL"),
        ("no_such_function", (), "AttributeError"),
    ],
)
def test_the_first_bad_end_ends_all(
    tmp_path: Path, function: str, arguments: tuple[str, ...], cause: str
) -> None:
    pids = tmp_path / "pids"
    with pytest.raises(ProcessFailed, match=cause) as caught:
        run_job(
            job(
                role("hang", str(pids), name="server", finishes=False), role(function, *arguments, name="bad")
            ),
            log_folder=tmp_path / "logs",
        )
    assert caught.value.replica == "bad-0"
    if pids.exists():
        assert all(gone(int(pid)) for pid in pids.read_text().split())


def test_the_last_lines_of_the_failed_one_are_kept(tmp_path: Path) -> None:
    with pytest.raises(ProcessFailed) as caught:
        run_job(job(role("fail")), log_folder=tmp_path)
    assert caught.value.last_lines[0] == "about to fail"
    assert caught.value.last_lines[-1] == "ValueError: the sky fell"


def test_who_only_lost_a_peer_is_not_blamed(tmp_path: Path) -> None:
    with pytest.raises(ProcessFailed) as caught:
        run_job(job(role("lose_peer", count=3), role("die_by_signal")), log_folder=tmp_path)
    assert caught.value.replica == "die_by_signal-0"


def test_servers_are_ended_when_the_others_have(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    run_job(
        job(role("hang", str(pids), finishes=False), role("touch", str(tmp_path / "made"))),
        log_folder=tmp_path / "logs",
    )
    if pids.exists():
        assert all(gone(int(pid)) for pid in pids.read_text().split())


def test_a_server_may_end_well_before_the_others(tmp_path: Path) -> None:
    run_job(
        job(role("leave_politely", finishes=False), role("touch", str(tmp_path / "made"))),
        log_folder=tmp_path,
    )
    assert (tmp_path / "made").exists()


def test_the_deadline_names_who_had_not_ended(tmp_path: Path) -> None:
    with pytest.raises(ProcessFailed, match=r"hang-0 had not ended 1 s after the start"):
        run_job(job(role("hang"), deadline_s=1), log_folder=tmp_path)


def test_a_missing_preload_is_named(tmp_path: Path) -> None:
    bad = Role(
        name="bad",
        target="support.launch_targets:touch",
        replicas=(Replica(name="bad-0"),),
        preload=("no_such_module",),
    )
    with pytest.raises(ProcessFailed, match="No module named 'no_such_module'"):
        run_job(job(bad), log_folder=tmp_path)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_nothing_is_left_when_the_supervisor_is_killed(tmp_path: Path, how: signal.Signals) -> None:
    prefix = f"geokfp-test-{uuid.uuid4().hex}"
    segment = Path(f"/dev/shm/{prefix}-segment")
    supervisor = subprocess.Popen(
        [sys.executable, "-m", "support.launch_supervisor", str(tmp_path), prefix], stderr=subprocess.DEVNULL
    )
    pids = tmp_path / "pids"
    wait_until(pids.exists, "the replica to start")
    segment.write_bytes(b"left over")
    supervisor.send_signal(how)
    supervisor.wait(10)
    wait_until(
        lambda: all(gone(int(pid)) for pid in pids.read_text().split()), "the replica and its child to end"
    )
    wait_until(lambda: not segment.exists(), "the shared memory to be removed")


def test_a_killed_fork_host_is_named_and_leaves_nothing(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    killed: list[int] = []

    def kill_host(who: str, message: str) -> None:
        wait_until(pids.exists, "the hanging replica")
        host = psutil.Process(int(pids.read_text().split()[0])).parent()
        assert host is not None
        killed.append(host.pid)
        host.kill()

    with pytest.raises(ProcessFailed, match="fork-host: killed by SIGKILL"):
        run_job(job(role("hang", str(pids)), role("tell")), log_folder=tmp_path / "logs", on_line=kill_host)
    assert killed
    wait_until(lambda: gone(int(pids.read_text().split()[0])), "the replica to follow its parent")


def test_a_job_that_could_never_end_is_refused() -> None:
    with pytest.raises(InputError, match="no role finishes"):
        job(role("hang", finishes=False))
    with pytest.raises(InputError, match="more than one replica is named 'touch-0'"):
        job(role("touch"), role("touch"))


def test_a_failure_is_recorded_beside_the_outputs(tmp_path: Path) -> None:
    output = tmp_path / "step" / "model"
    with pytest.raises(ProcessFailed), failure_recorded("train_gnn", beside=output):
        raise ProcessFailed("trainer-1", "killed by SIGKILL", ("a", "b"))
    (record,) = read_failures(tmp_path)
    assert (record.step, record.replica, record.cause, record.last_lines) == (
        "train_gnn",
        "trainer-1",
        "killed by SIGKILL",
        ("a", "b"),
    )


def test_an_older_record_does_not_outlive_a_good_run(tmp_path: Path) -> None:
    output = tmp_path / "model"
    with pytest.raises(InputError), failure_recorded("ingest_graph", beside=output):
        raise InputError("nodes.csv:3: no such column")
    with failure_recorded("ingest_graph", beside=output):
        pass
    assert read_failures(tmp_path) == []
    assert os.listdir(tmp_path) == []
