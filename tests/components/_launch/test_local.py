"""The supervisor, with real processes killed for real."""

import os
import signal
import subprocess
import sys
import threading
import uuid
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest
from geokfp.components._launch import Job, ProcessFailed, Replica, Role, local, run_job
from support.clock import FakeClock
from support.faults import wait_until
from support.process_ends import all_gone, wait_until_gone

TESTS = Path(__file__).parents[2]


def role(
    function: str,
    *arguments: str,
    name: str = "",
    count: int = 1,
    finishes: bool = True,
    preload: tuple[str, ...] = (),
    **environment: str,
) -> Role:
    name = name or function
    return Role(
        name=name,
        target=f"support.launch_targets:{function}",
        replicas=tuple(
            Replica(name=f"{name}-{i}", arguments=arguments, environment=environment) for i in range(count)
        ),
        preload=preload,
        finishes=finishes,
    )


def job(*roles: Role, deadline_s: float = 50, prefixes: tuple[str, ...] = ()) -> Job:
    return Job(name="test", roles=roles, deadline_s=deadline_s, shared_memory_prefixes=prefixes)


def told(*roles: Role, log_folder: Path) -> list[tuple[str, str]]:
    lines: list[tuple[str, str]] = []
    run_job(job(*roles), log_folder=log_folder, on_line=lambda *line: lines.append(line))
    return sorted(lines)


def test_runs_with_arguments_and_environment(tmp_path: Path) -> None:
    run_job(job(role("touch", str(tmp_path / "made"), GREETING="hello")), log_folder=tmp_path / "logs")
    assert (tmp_path / "made").read_text() == "hello"


def test_progress_is_passed_on_and_chatter_is_not(tmp_path: Path) -> None:
    assert told(role("tell", count=2), log_folder=tmp_path) == [("tell-0", "halfway"), ("tell-1", "halfway")]
    assert "chatter" in (tmp_path / "tell-0.log").read_text()


def test_progress_is_printed_with_the_name_by_default(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run_job(job(role("tell")), log_folder=tmp_path)
    assert " s] tell-0: halfway\n" in capsys.readouterr().out


def test_what_is_preloaded_is_imported_once_with_what_all_share(tmp_path: Path) -> None:
    assert told(
        role("tell_import", count=2, preload=("support.launch_targets",), GREETING="hello"),
        log_folder=tmp_path,
    ) == [(f"tell_import-{i}", "hello imported in the host") for i in range(2)]


def test_a_target_is_imported_with_its_own_environment(tmp_path: Path) -> None:
    assert told(
        role("tell_import", name="one", GREETING="hello"),
        role("tell_import", name="two", GREETING="goodbye"),
        log_folder=tmp_path,
    ) == [("one-0", "hello imported here"), ("two-0", "goodbye imported here")]


def test_a_module_found_by_its_own_search_path_is_imported(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / name).mkdir()
        (tmp_path / name / f"only_in_{name}.py").write_text("")
    roles = [
        role("import_module", f"only_in_{name}", name=name, PYTHONPATH=str(tmp_path / name)) for name in "ab"
    ]
    run_job(job(*roles), log_folder=tmp_path / "logs")


def test_the_working_directory_is_not_searched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "json.py").write_text("raise RuntimeError('shadowed')")
    monkeypatch.chdir(tmp_path)
    run_job(job(role("leave_politely")), log_folder=Path("logs"))
    assert (tmp_path / "logs/leave_politely-0.log").exists()


def test_each_leads_its_own_session(tmp_path: Path) -> None:
    assert told(role("tell_session"), log_folder=tmp_path) == [("tell_session-0", "leads True")]


def test_runs_in_a_thread_other_than_the_main_one(tmp_path: Path) -> None:
    errors: list[ProcessFailed] = []

    def run() -> None:
        try:
            run_job(job(role("fail")), log_folder=tmp_path)
        except ProcessFailed as error:
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(30)
    assert [error.cause for error in errors] == ["ValueError: the sky fell"]


@pytest.mark.parametrize(
    ("function", "arguments", "cause"),
    [
        ("fail", (), "ValueError: the sky fell"),
        ("fail_from_a_thread", (), "^bad-0: the helper gave up$"),
        ("leave", ("7",), "ended with exit status 7"),
        ("leave", ("256",), "ended with exit status 1"),
        ("die_by_signal", (), "killed by SIGKILL"),
        ("abort", (), "killed by SIGABRT"),
        ("no_such_function", (), "AttributeError: module 'support.launch_targets' has no attribute"),
    ],
)
def test_the_first_bad_end_ends_all(
    tmp_path: Path, function: str, arguments: tuple[str, ...], cause: str
) -> None:
    pids = tmp_path / "pids"
    server = role("hang", str(pids), name="server", finishes=False)
    with pytest.raises(ProcessFailed, match=cause) as caught:
        run_job(job(server, role(function, *arguments, name="bad")), log_folder=tmp_path / "logs")
    assert caught.value.replica == "bad-0"
    wait_until_gone(pids)


def test_a_failing_server_ends_all(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    with pytest.raises(ProcessFailed, match="server-0: killed by SIGKILL"):
        run_job(
            job(role("hang", str(pids)), role("die_by_signal", name="server", finishes=False)),
            log_folder=tmp_path / "logs",
        )
    wait_until_gone(pids)


def test_the_last_lines_of_the_failed_one_are_kept(tmp_path: Path) -> None:
    with pytest.raises(ProcessFailed) as caught:
        run_job(job(role("fail")), log_folder=tmp_path)
    assert caught.value.last_lines[0] == "about to fail"
    assert caught.value.last_lines[-1] == "ValueError: the sky fell"


def test_the_place_of_a_crash_is_in_the_last_lines(tmp_path: Path) -> None:
    with pytest.raises(ProcessFailed) as caught:
        run_job(job(role("abort")), log_folder=tmp_path)
    assert any("in abort" in line for line in caught.value.last_lines)


def test_who_only_lost_a_peer_is_not_blamed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "OTHERS_S", 40.0)  # however long the cause takes to start
    with pytest.raises(ProcessFailed) as caught:
        run_job(job(role("lose_peer", count=3), role("die_by_signal")), log_folder=tmp_path)
    assert caught.value.replica == "die_by_signal-0"


def test_an_error_in_a_fork_of_the_target_is_not_the_replicas(tmp_path: Path) -> None:
    run_job(job(role("fail_in_a_fork")), log_folder=tmp_path)
    assert "of the child" in (tmp_path / "fail_in_a_fork-0.log").read_text()


def test_servers_are_ended_when_the_others_have(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    run_job(
        job(role("hang", str(pids), finishes=False), role("wait_for", str(pids))),
        log_folder=tmp_path / "logs",
    )
    wait_until(lambda: all_gone(pids), "the server and its children to end")


def test_a_server_may_end_well_before_the_others(tmp_path: Path) -> None:
    run_job(
        job(role("leave_politely", finishes=False), role("touch", str(tmp_path / "made"))),
        log_folder=tmp_path,
    )
    assert (tmp_path / "made").exists()


def test_the_deadline_names_who_had_not_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock jumps past it when the one that ends has ended."""
    clock, note = FakeClock(), local._Run._note

    def note_and_jump(run: local._Run, event: dict[str, Any]) -> None:
        note(run, event)
        clock.advance(2.0 * (event.get("ended") == "leave_politely-0"))

    monkeypatch.setattr(local._Run, "_note", note_and_jump)
    monkeypatch.setattr(local, "time", SimpleNamespace(monotonic=clock))
    with pytest.raises(ProcessFailed, match=r"hang-0, hang-1 had not ended 2 s after the start of test"):
        run_job(job(role("hang", count=2), role("leave_politely"), deadline_s=2), log_folder=tmp_path)


def test_the_deadline_holds_for_the_preload(tmp_path: Path) -> None:
    hanging = role("touch", preload=("support.launch_hanging_import",), HANGING_IMPORT=str(tmp_path / "pids"))
    with pytest.raises(ProcessFailed, match=r"fork-host: the modules to preload were not imported 1 s after"):
        run_job(job(hanging, deadline_s=1), log_folder=tmp_path / "logs")
    wait_until_gone(tmp_path / "pids")


def test_a_missing_preload_is_named(tmp_path: Path) -> None:
    with pytest.raises(ProcessFailed, match=r"fork-host.*No module named 'no_such_module'"):
        run_job(job(role("touch", preload=("no_such_module",))), log_folder=tmp_path)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("preload", [(), ("support.launch_hanging_import",)])
def test_nothing_is_left_when_the_supervisor_is_killed(
    tmp_path: Path, how: signal.Signals, preload: tuple[str, ...]
) -> None:
    prefix = f"geokfp-test-{uuid.uuid4().hex}"
    segment = Path(f"/dev/shm/{prefix}-segment")
    supervisor = subprocess.Popen(
        [sys.executable, "-m", "support.launch_supervisor", str(tmp_path), prefix, *preload],
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": str(TESTS)},
    )
    try:
        pids = tmp_path / "pids"
        wait_until(pids.exists, "the replica, or the preload, to start")
        if not preload:
            segment.write_bytes(b"left over")
        supervisor.send_signal(how)
        supervisor.wait(30)
        wait_until(lambda: all_gone(pids), "the replica and its children to end")
        wait_until(lambda: not segment.exists(), "the shared memory to be removed")
    finally:
        supervisor.kill()
        supervisor.wait()
        segment.unlink(missing_ok=True)


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
    assert len(killed) == 1
    wait_until(lambda: all_gone(pids), "the replica and its children to follow")


def test_an_error_of_the_listener_ends_all(tmp_path: Path) -> None:
    pids = tmp_path / "pids"

    def refuse(who: str, message: str) -> None:
        wait_until(pids.exists, "the hanging replica")
        raise ZeroDivisionError(message)

    with pytest.raises(ZeroDivisionError, match="halfway"):
        run_job(job(role("hang", str(pids)), role("tell")), log_folder=tmp_path / "logs", on_line=refuse)
    wait_until(lambda: all_gone(pids), "the replica and its children to end")
