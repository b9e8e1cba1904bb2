"""`geokfp submit` against a double of the API that is strict about what it is sent."""

import datetime as dt
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from geokfp.pipelines import compiled_package
from geokfp.pipelines._command_line.errors import ServerError, StillRunning
from geokfp.pipelines._command_line.package import read_package
from geokfp.pipelines._command_line.server import runs
from geokfp.pipelines._command_line.server.connection import Address, Connection, connect
from kfp import Client
from support import toy_pipelines
from support.clock import FakeClock
from support.pipelines_server import PipelinesServer, serving
from support.typed_commands import Typed, typed_command

BEGAN = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)


@pytest.fixture(scope="module")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return toy_pipelines.compile_to(tmp_path_factory.mktemp("compiled"))


@pytest.fixture
def api() -> Iterator[PipelinesServer]:
    with serving() as server:
        yield server
        assert server.wrong == []


@pytest.fixture
def geokfp(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Typed:
    for name in ("KF_PIPELINES_ENDPOINT", "KF_PIPELINES_SA_TOKEN_PATH"):
        monkeypatch.delenv(name, raising=False)
    return typed_command(monkeypatch, capsys)


def at(seconds: float) -> str:
    return (BEGAN + dt.timedelta(seconds=seconds)).isoformat()


def task(name: str, state: str, ended: float | None = None, **more: Any) -> dict[str, Any]:
    """One node of a run as the API tells it: an end that has not come is 1970."""
    end = "1970-01-01T00:00:00Z" if ended is None else at(ended)
    times = {"create_time": at(0), "start_time": at(0), "end_time": end}
    return {"display_name": name, "task_id": f"toy-{name}", "state": state, **times, **more}


def look(state: str, *tasks: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"state": state, "run_details": {"task_details": list(tasks)}, "finished_at": at(9), **more}


def failing(**more: Any) -> list[dict[str, Any]]:
    return [look("FAILED", task("root", "FAILED", 4), task("make", "FAILED", 4, **more))]


def test_a_run_is_started_and_watched_step_by_step(toy: Path, api: PipelinesServer, geokfp: Typed) -> None:
    api.script = [
        {"state": "PENDING"},
        look("RUNNING", task("root", "RUNNING"), task("make-driver", "SUCCEEDED", 1)),
        look("RUNNING", task("make", "RUNNING")),
        look("RUNNING", task("make", "SUCCEEDED", 42.5), task("fit", "RUNNING")),
        look("SUCCEEDED", task("make", "SUCCEEDED", 42.5), task("fit", "SUCCEEDED", 7)),
    ]
    given = ["-p", "size=5", "-p", "extra={a: 1}", "-p", "rate=2", "--experiment", "mine", "--name", "first"]
    given += ["--service-account", "runner", "--pipeline-root", "s3://bucket/root", "--no-cache"]
    ended = geokfp("submit", toy, "--host", api.url, "--poll-s", "0.01", *given)
    assert ended.err == ""
    assert ended.status == 0
    assert [line for line in ended.out.splitlines() if not line.startswith(("run ", "succeeded in "))] == [
        "make: started",
        "make: succeeded in 42.5 s",
        "fit: started",
        "fit: succeeded in 7.0 s",
    ]
    (run,) = api.runs
    assert ended.out.startswith(f"run {run['run_id']}: {api.url}/#/runs/details/{run['run_id']}\n")
    assert run["display_name"] == "first"
    assert run["service_account"] == "runner"
    values = {"size": 5, "extra": {"a": 1}, "rate": 2.0}
    assert run["runtime_config"] == {"parameters": values, "pipeline_root": "s3://bucket/root"}
    assert not any(each["cachingOptions"] for each in run["pipeline_spec"]["root"]["dag"]["tasks"].values())
    assert [each["display_name"] for each in api.experiments] == ["mine"]


def test_what_is_sent_is_the_package_and_its_images_prefixed(api: PipelinesServer, geokfp: Typed) -> None:
    given = ["-p", "epochs=3", "--image-prefix", "registry.example.com/team/", "--no-wait"]
    assert geokfp("submit", "cross-site", "--host", f"{api.url}/", *given).status == 0
    (run,) = api.runs
    spec, platform = yaml.safe_load_all(compiled_package("cross_site").read_text(encoding="utf-8"))
    for executor in spec["deploymentSpec"]["executors"].values():
        executor["container"]["image"] = "registry.example.com/team/" + executor["container"]["image"]
    assert run["pipeline_spec"] == {"pipeline_spec": spec, "platform_spec": platform}
    assert run["display_name"].startswith("cross-site 20")
    assert not any(asked.startswith("GET /runs") for asked in api.asked)


def test_an_experiment_that_is_there_is_used(toy: Path, api: PipelinesServer, geokfp: Typed) -> None:
    for _ in range(2):
        assert geokfp("submit", toy, "--host", api.url, "--no-wait").status == 0
    assert [each["display_name"] for each in api.experiments] == ["Default"]
    assert {run["experiment_id"] for run in api.runs} == {api.experiments[0]["experiment_id"]}


def test_a_failed_step_is_named_with_the_last_error_of_its_pod(
    toy: Path, api: PipelinesServer, geokfp: Typed
) -> None:
    executor = task(
        "executor", "FAILED", 4, child_tasks=[{"pod_name": "toy-impl-0"}, {"pod_name": "toy-impl-1"}]
    )
    tries = [task("executor(0)", "FAILED", 2), task("executor(1)", "FAILED", 4)]
    for number, node in enumerate((*tries, executor)):
        node["task_id"] = f"toy-{number}"
    api.script = failing(child_tasks=[{"pod_name": "toy-impl-2"}])
    api.script[0]["run_details"]["task_details"] += [*tries, executor]
    api.logs["toy-impl-1"] = (
        "[geokfp 0.1 s] making rows\nTraceback (most recent call last):\n"
        "geokfp.components._files.errors.InputError: rows.csv line 3: 'x' is not a number\n"
        "F1130 12:00:00 main.go:66] failed to execute component: exit status 1\n"
    )
    ended = geokfp("submit", toy, "--host", api.url)
    link = f"{api.url}/#/runs/details/{api.runs[0]['run_id']}"
    assert ended.err == f"geokfp: make failed: InputError: rows.csv line 3: 'x' is not a number; {link}\n"
    assert ended.status == 1
    assert "make: failed in 4.0 s" in ended.out


@pytest.mark.parametrize(
    ("script", "says"),
    [
        (failing(error={"message": "exit\ncode 137"}), "make failed: exit code 137; http"),
        (failing(state_history=[{"error": {"message": "OOM"}}]), "make failed: OOM; http"),
        (
            failing(child_tasks=[{"pod_name": "gone"}]),
            "make failed: the installation tells no cause; the log of pod gone may tell it; http",
        ),
        (failing(), "make failed: the installation tells no cause; http"),
        ([look("FAILED", error={"message": "no quota"})], "the run failed: no quota; http"),
        ([look("CANCELED", task("make", "CANCELED", 1))], "the run canceled; http"),
        ([look("SKIPPED")], "the run skipped; http"),
    ],
)
def test_a_run_that_does_not_succeed_ends_with_one_line(
    script: list[dict[str, Any]], says: str, toy: Path, api: PipelinesServer, geokfp: Typed
) -> None:
    api.script = script
    ended = geokfp("submit", toy, "--host", api.url)
    assert ended.status == 1
    assert ended.err.startswith(f"geokfp: {says}")
    assert ended.err.count("\n") == 1


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (["-p", "sise=3"], "--param sise: toy has no such parameter; did you mean 'size'?"),
        (["-p", "size=x"], "--param size=x: a whole number such as 10 is needed"),
        (
            ["-p", "mode=[[ScheduledTime]]"],
            "mode=[[ScheduledTime]]: [[ScheduledTime]] in a run that no sched",
        ),
        (["--image-prefix", "a b"], "--image-prefix a b: a registry and folder"),
        (["--image-prefix", "https://r/x"], "--image-prefix https://r/x: a registry and folder"),
        (["--image-prefix", "r/x:tag"], "--image-prefix r/x:tag: a registry and folder"),
        (["--image-prefix", "r/X"], "--image-prefix r/X: a registry and folder"),
        (["--host", "http://[::1"], "--host 'http://[::1': allowed: a URL such as https://"),
        (["--host", "http://a:99999"], "--host 'http://a:99999': allowed: a URL such as https://"),
        (["--host", "http://a/#/runs"], "--host 'http://a/#/runs': allowed: a URL such as https://"),
        (["--host", "http://a\nb"], "--host 'http://a\\nb': allowed: a URL such as https://"),
        (["--token-file", "/"], "--token-file /: Is a directory; allowed: a file that can be read"),
        (["--cookies-file", "/"], "--cookies-file /: Is a directory; allowed: a file that can be read"),
        (["--ca-file", "/"], "--ca-file /: Is a directory; allowed: a file that can be read"),
        (["--name", "a\nb"], "--name 'a\\nb': allowed: text on one line"),
        (["--name", " "], "--name ' ': allowed: text on one line"),
        (["--experiment", ""], "--experiment '': allowed: text on one line"),
        (["--service-account", "My_account"], "--service-account My_account: allowed: small letters"),
        (["--pipeline-root", "bucket/runs"], "--pipeline-root bucket/runs: allowed: a URI such as s3://"),
        (
            ["--host", "kubeflow.example.com"],
            "--host 'kubeflow.example.com': allowed: a URL such as https://",
        ),
        (["--host", ""], "--host is needed: the URL of the installation, here or as KF_PIPELINES_ENDPOINT"),
        (
            ["--ca-file", "absent.pem"],
            "--ca-file absent.pem: No such file or directory; allowed: a file",
        ),
        (["--token-file", "absent"], "--token-file absent: No such file or directory; allowed: a file"),
        (["-p", f"mode={'x' * 10_000}"], "toy: its values have 10012 characters as JSON; allowed: 10000"),
    ],
)
def test_wrong_usage_is_refused_before_anything_is_sent(
    given: list[str], says: str, toy: Path, api: PipelinesServer, geokfp: Typed
) -> None:
    ended = geokfp("submit", toy, "--host", api.url, *given)
    assert ended.status == 2
    assert ended.err.startswith(f"geokfp: {says}")
    assert api.asked == []


def test_options_of_steps_are_checked_as_for_a_run_here(api: PipelinesServer, geokfp: Typed) -> None:
    ended = geokfp("submit", "cross_site", "--host", api.url, "-p", "workers_per_site=0")
    assert ended.status == 2
    assert ended.err == "geokfp: workers_per_site is 0; allowed: 1 or more\n"
    assert api.asked == []


@pytest.mark.parametrize(
    ("path", "status", "says"),
    [
        (
            ("GET", "/healthz"),
            401,
            "asking for its health: status 401: it does not know who asks; allowed: a v",
        ),
        (("GET", "/healthz"), 404, "asking for its health: status 404: told so"),
        (("GET", "/experiments"), 403, "experiment 'Default': status 403: it does not allow this: told so"),
        (("POST", "/experiments"), 500, "experiment 'Default': status 500: told so"),
        (("POST", "/runs"), 404, "starting the run: status 404: told so"),
        (("POST", "/runs"), 503, "starting the run: status 503: told so"),
        (("GET", "/runs/run-2"), 403, "looking at run run-2: status 403: it does not allow this: told so"),
    ],
)
def test_a_refusal_is_one_line(
    path: tuple[str, str], status: int, says: str, toy: Path, api: PipelinesServer, geokfp: Typed
) -> None:
    api.fail(*path, status)
    ended = geokfp("submit", toy, "--host", api.url)
    assert ended.status == 1
    assert ended.err.startswith(f"geokfp: {api.url}: {says}")
    assert ended.err.count("\n") == 1


def test_an_installation_that_is_away_for_a_while_is_asked_again(
    toy: Path, api: PipelinesServer, geokfp: Typed
) -> None:
    api.fail("GET", "/runs/run-2", 503, 429, 500)
    assert geokfp("submit", toy, "--host", api.url, "--poll-s", "0.01").status == 0
    assert api.asked.count("GET /runs/run-2") == 4


def test_nothing_that_answers_is_one_line(toy: Path, geokfp: Typed) -> None:
    with serving() as api:
        url = api.url
    ended = geokfp("submit", toy, "--host", url)
    assert (ended.status, ended.err) == (1, f"geokfp: {url}: asking for its health: Connection refused\n")


def test_another_site_is_not_taken_for_an_installation(
    toy: Path, api: PipelinesServer, geokfp: Typed, tmp_path: Path
) -> None:
    api.cookie = "session=42"
    ended = geokfp("submit", toy, "--host", api.url)
    assert ended.status == 1
    assert "answers, but not as the API of Kubeflow Pipelines" in ended.err
    (tmp_path / "cookies").write_text("session=42\n")
    assert geokfp("submit", toy, "--host", api.url, "--cookies-file", tmp_path / "cookies").status == 0


def test_a_token_is_read_anew_for_each_request(
    toy: Path, api: PipelinesServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = tmp_path / "token"
    token.write_text("first")
    api.token = "first"
    connection = connect(Address(host=api.url, token_file=token))
    assert runs.experiment_id(connection, "mine") == "experiment-1"
    api.token = "second"
    with pytest.raises(ServerError, match="status 401: it does not know who asks"):
        runs.experiment_id(connection, "mine")
    token.write_text("second\n")
    assert runs.experiment_id(connection, "mine") == "experiment-1"


def test_users_with_a_namespace_each_must_say_theirs(toy: Path, api: PipelinesServer, geokfp: Typed) -> None:
    api.multi_user = True
    ended = geokfp("submit", toy, "--host", api.url)
    assert ended.status == 2
    assert "has several users; allowed: with --namespace NAME of your profile" in ended.err
    assert geokfp("submit", toy, "--host", api.url, "--namespace", "kubeflow").status == 0
    assert [each["namespace"] for each in api.experiments] == ["kubeflow"]


def test_waiting_has_an_end(toy: Path, api: PipelinesServer, geokfp: Typed) -> None:
    api.script = [look("RUNNING", task("make", "RUNNING"))]
    ended = geokfp("submit", toy, "--host", api.url, "--timeout-s", "0.05", "--poll-s", "0.01")
    assert ended.status == 124
    assert ended.err.startswith("geokfp: run run-2 still goes on after 0.05 s, make running: http")
    assert "POST /runs/run-2:terminate" not in api.asked


@pytest.mark.parametrize("also_ends", [False, True])
def test_interrupted_it_says_what_becomes_of_the_run(
    also_ends: bool, toy: Path, api: PipelinesServer
) -> None:
    api.script = [look("RUNNING", task("make", "RUNNING"))]
    command = [sys.executable, "-m", "geokfp.pipelines._command_line", "submit", str(toy), "--host", api.url]
    command += ["--terminate-on-interrupt"] if also_ends else []
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert any("make: started" in line for line in process.stdout)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=30)
    assert process.returncode == 130
    goes_on = f"geokfp: interrupted; run run-2 goes on: {api.url}/#/runs/details/run-2\n"
    assert said == ("geokfp: interrupted; run run-2 is being terminated\n" if also_ends else goes_on)
    assert ("POST /runs/run-2:terminate" in api.asked) == also_ends


def test_an_installation_that_stays_away_is_given_up(toy: Path, api: PipelinesServer) -> None:
    connection = connect(Address(host=api.url))
    clock = FakeClock()
    package = read_package(toy)
    waiting = runs.Waiting(poll_s=7, now=clock, sleep=clock.advance)
    api.fail("GET", "/runs/run-9", *[502] * 40)
    with pytest.raises(ServerError, match="looking at run run-9: status 502: told so"):
        runs.watch(connection, "run-9", package, lambda _: None, waiting)
    assert runs.PATIENCE_S < clock.now <= runs.PATIENCE_S + 7
    with pytest.raises(StillRunning):
        runs.watch(
            connection,
            "run-9",
            package,
            lambda _: None,
            runs.Waiting(poll_s=1, timeout_s=3, now=clock, sleep=clock.advance),
        )


def test_the_time_to_wait_ends_between_two_looks() -> None:
    slept: list[float] = []
    running = SimpleNamespace(state="RUNNING", run_details=None)
    client = SimpleNamespace(get_run=lambda run_id: running)
    made = Connection(address=Address(host="http://kubeflow.example.com"), client=client)
    waiting = runs.Waiting(poll_s=3600, timeout_s=7, now=lambda: sum(slept), sleep=slept.append)
    package = read_package(compiled_package("single_site"))
    with pytest.raises(StillRunning, match="run one still goes on after 7 s, no step running"):
        runs.watch(made, "one", package, lambda states: None, waiting)
    assert slept == [7]


def test_interrupted_while_it_starts_it_says_that_the_run_may_be_there(
    toy: Path, api: PipelinesServer, geokfp: Typed, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Client, "run_pipeline", interrupted)
    ended = geokfp("submit", toy, "--host", api.url, "--name", "one")
    assert ended.status == 130
    assert ended.err == f"geokfp: interrupted; run 'one' may have been started: {api.url}/#/runs\n"
