"""`geokfp schedule` against a double of the API that is strict about what it is sent."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from geokfp.pipelines._command_line.server.interval import seconds_of
from kfp import Client
from kfp_server_api import ApiException
from support import toy_pipelines
from support.pipelines_server import PipelinesServer, serving
from support.typed_commands import Typed, typed_command


@pytest.fixture(scope="module")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return toy_pipelines.compile_to(tmp_path_factory.mktemp("compiled"))


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> Iterator[PipelinesServer]:
    with serving() as server:
        monkeypatch.setenv("KF_PIPELINES_ENDPOINT", server.url)
        yield server
        assert server.wrong == []


@pytest.fixture
def geokfp(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Typed:
    monkeypatch.delenv("KF_PIPELINES_SA_TOKEN_PATH", raising=False)
    return typed_command(monkeypatch, capsys)


def only(api: PipelinesServer) -> dict[str, Any]:
    (found,) = api.recurring
    return found


def test_a_schedule_by_cron(toy: Path, api: PipelinesServer, geokfp: Typed) -> None:
    given = ["--cron", "0 3 * * 7", "--name", "nightly", "--max-concurrency", "2", "--no-cache"]
    given += ["-p", "mode=[[ScheduledTime.2006-01-02]]", "-p", "size=4", "--service-account", "runner"]
    ended = geokfp("schedule", toy, *given)
    assert ended.err == ""
    made = only(api)
    assert (
        ended.out
        == f"created nightly ({made['recurring_run_id']}): cron 0 0 3 * * 0 (UTC), active, 2 at once\n"
    )
    assert made["trigger"] == {"cron_schedule": {"cron": "0 0 3 * * 0"}}
    assert (made["mode"], made["no_catchup"], made["max_concurrency"]) == ("ENABLE", True, "2")
    assert made["runtime_config"] == {"parameters": {"mode": "[[ScheduledTime.2006-01-02]]", "size": 4}}
    assert made["service_account"] == "runner"
    assert made["description"] == "Makes rows and fits."
    assert not any(task["cachingOptions"] for task in made["pipeline_spec"]["root"]["dag"]["tasks"].values())


def test_a_schedule_by_interval(api: PipelinesServer, geokfp: Typed) -> None:
    given = ["--interval", "1d12h", "--catch-up", "--paused", "--image-prefix", "localhost:5000"]
    ended = geokfp("schedule", "single_site", *given)
    assert ended.err == ""
    made = only(api)
    assert ended.out.endswith("every 1d12h (UTC), paused, 1 at once\n")
    assert made["trigger"] == {"periodic_schedule": {"interval_second": "129600"}}
    assert (made["mode"], made["no_catchup"], made["display_name"]) == ("DISABLE", False, "single-site")
    executors = made["pipeline_spec"]["pipeline_spec"]["deploymentSpec"]["executors"].values()
    assert all(each["container"]["image"].startswith("localhost:5000/geokfp-") for each in executors)


def test_a_retraining_by_schedule(api: PipelinesServer, geokfp: Typed) -> None:
    told = {
        "champions": "s3://bucket/champions",
        "nodes": "s3://bucket/%Y-%m-%d/nodes.csv",
        "edges": "s3://bucket/[[ScheduledTime.2006-01-02]]/edges.csv",
        "features": "s3://bucket/{{$.scheduledTime.strftime('%Y-%m-%d')}}/features.npz",
        "time": "[[ScheduledTime]]",
        "launcher": "jobset",
    }
    words = [word for name, value in told.items() for word in ("-p", f"{name}={value}")]
    given = ["--cron", "0 3 * * *", "--name", "retrain", "--image-prefix", "localhost:5000/team"]
    ended = geokfp("schedule", "scheduled_retrain", *given, *words, "-p", "margin=0.01")
    assert ended.err == ""
    made = only(api)
    assert made["trigger"] == {"cron_schedule": {"cron": "0 0 3 * * *"}}
    assert made["runtime_config"] == {"parameters": {**told, "margin": 0.01}}
    spec = made["pipeline_spec"]
    assert spec["pipeline_spec"]["pipelineInfo"]["name"] == "scheduled-retrain"
    limits = spec["platform_spec"]["platforms"]["kubernetes"]["deploymentSpec"]["executors"]
    assert "exec-promote-model" in limits
    for executor in spec["pipeline_spec"]["deploymentSpec"]["executors"].values():
        assert executor["container"]["image"].startswith("localhost:5000/team/geokfp-")
    ended = geokfp("schedule", "scheduled_retrain", *given, "-p", "nodes=s3://bucket/[[Scheduled]]/nodes.csv")
    assert (ended.status, ended.err.count("\n")) == (2, 1)
    assert len(api.recurring) == 1


def test_an_option_before_the_pipeline_is_understood(toy: Path, api: PipelinesServer, geokfp: Typed) -> None:
    assert geokfp("schedule", "--interval", "6h", toy).status == 0
    assert geokfp("schedule", "set", toy, "--interval", "6h").out.startswith("unchanged toy (schedule-2)")
    assert only(api)["trigger"] == {"periodic_schedule": {"interval_second": "21600"}}


def test_a_changed_schedule_replaces_the_one_of_its_name(
    toy: Path, api: PipelinesServer, geokfp: Typed
) -> None:
    geokfp("schedule", toy, "--interval", "6h", "--name", "other")
    assert geokfp("schedule", toy, "--interval", "6h").out.startswith("created toy (schedule-3)")
    assert geokfp("schedule", toy, "--interval", "6h").out.startswith("unchanged toy (schedule-3)")
    assert geokfp("schedule", toy, "--interval", "7h").out.startswith("replaced toy (schedule-5)")
    assert geokfp("schedule", toy, "--interval", "7h", "-p", "size=4").out.startswith(
        "replaced toy (schedule-6)"
    )
    assert [each["recurring_run_id"] for each in api.recurring] == ["schedule-2", "schedule-6"]


def test_a_paused_schedule_stays_paused_when_it_is_changed(
    toy: Path, api: PipelinesServer, geokfp: Typed
) -> None:
    geokfp("schedule", toy, "--interval", "6h")
    assert geokfp("schedule", "pause", "toy").out == "paused toy\n"
    assert only(api)["status"] == "DISABLED"
    assert "unchanged" in geokfp("schedule", toy, "--interval", "6h").out
    assert geokfp("schedule", toy, "--interval", "7h").out.endswith("every 7h (UTC), paused, 1 at once\n")
    assert geokfp("schedule", "resume", "toy").out == "resumed toy\n"
    assert only(api)["status"] == "ENABLED"
    assert geokfp("schedule", toy, "--interval", "7h", "--paused").out.startswith("replaced")
    assert only(api)["status"] == "DISABLED"


def test_an_old_schedule_that_stays_keeps_its_place(toy: Path, api: PipelinesServer, geokfp: Typed) -> None:
    geokfp("schedule", toy, "--interval", "6h")
    api.fail("DELETE", "/recurringruns/schedule-2", 403)
    ended = geokfp("schedule", toy, "--interval", "7h")
    assert ended.status == 1
    says = "deleting schedule 'toy' (schedule-2): status 403: it does not allow this: told so"
    assert ended.err == f"geokfp: {api.url}: {says}\n"
    assert only(api)["recurring_run_id"] == "schedule-2"


def after(monkeypatch: pytest.MonkeyPatch, method: str, happens: Callable[[], None]) -> None:
    """Lets something happen when a request has been answered, before the command goes on."""
    asked = getattr(Client, method)

    def asked_then(*arguments: Any, **options: Any) -> Any:
        made = asked(*arguments, **options)
        monkeypatch.setattr(Client, method, asked)
        happens()
        return made

    monkeypatch.setattr(Client, method, asked_then)


def interrupt() -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("method", "left", "says"),
    [
        ("create_recurring_run", "6h", "schedule 'toy' is as it was"),
        ("delete_recurring_run", "7h", "schedule 'toy' is set all the same"),
    ],
)
def test_an_interrupted_change_leaves_one_schedule(
    method: str,
    left: str,
    says: str,
    toy: Path,
    api: PipelinesServer,
    geokfp: Typed,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    geokfp("schedule", toy, "--interval", "6h")
    after(monkeypatch, method, interrupt)
    ended = geokfp("schedule", toy, "--interval", "7h")
    assert (ended.status, ended.err) == (130, f"geokfp: interrupted; {says}\n")
    assert only(api)["trigger"] == {"periodic_schedule": {"interval_second": str(seconds_of(left))}}


def test_an_interrupted_creation_leaves_none(
    toy: Path, api: PipelinesServer, geokfp: Typed, monkeypatch: pytest.MonkeyPatch
) -> None:
    after(monkeypatch, "create_recurring_run", interrupt)
    ended = geokfp("schedule", toy, "--interval", "7h")
    assert (ended.status, ended.err) == (130, "geokfp: interrupted; there is no schedule 'toy'\n")
    assert api.recurring == []


def test_an_answer_that_is_lost_leaves_the_new_schedule(
    toy: Path, api: PipelinesServer, geokfp: Typed, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lost() -> None:
        raise ApiException(status=504, reason="Gateway Timeout")

    geokfp("schedule", toy, "--interval", "6h")
    after(monkeypatch, "delete_recurring_run", lost)
    assert geokfp("schedule", toy, "--interval", "7h").out.startswith("replaced toy (schedule-3)")
    assert only(api)["recurring_run_id"] == "schedule-3"


@pytest.mark.parametrize(("made_at", "status"), [("2000", 0), ("2100", 1)])
def test_of_two_calls_at_once_the_later_one_stands(
    made_at: str,
    status: int,
    toy: Path,
    api: PipelinesServer,
    geokfp: Typed,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def other_call() -> None:
        own = {"recurring_run_id": "other", "created_at": f"{made_at}-01-01T00:00:00Z"}
        api.recurring.append({**api.recurring[0], **own})

    after(monkeypatch, "create_recurring_run", other_call)
    ended = geokfp("schedule", toy, "--interval", "6h")
    assert ended.status == status
    assert only(api)["recurring_run_id"] == ("other" if status else "schedule-2")
    if status:
        assert ended.err == (
            "geokfp: schedule 'toy': another call has set it at the same time; that one stands\n"
        )


def test_schedules_are_listed_beyond_one_page(toy: Path, api: PipelinesServer, geokfp: Typed) -> None:
    assert geokfp("schedule", "list").out == "no schedules\n"
    geokfp("schedule", toy, "--cron", "*/5 * * * *", "--name", "often")
    geokfp("schedule", "single_site", "--interval", "6h", "--paused")
    api.recurring += [
        {**api.recurring[0], "recurring_run_id": f"more-{n}", "display_name": "m"} for n in range(200)
    ]
    lines = geokfp("schedule", "list").out.splitlines()
    assert len(lines) == 203
    assert lines[0].split() == ["Schedule", "When", "(UTC)", "State", "At", "once", "Pipeline", "Id"]
    assert lines[1].split() == [
        "often",
        "cron",
        "0",
        "*/5",
        "*",
        "*",
        "*",
        "*",
        "active",
        "1",
        "toy",
        "schedule-2",
    ]
    assert lines[2].split() == ["single-site", "every", "6h", "paused", "1", "single-site", "schedule-3"]


def test_a_schedule_is_deleted_by_name_or_id(toy: Path, api: PipelinesServer, geokfp: Typed) -> None:
    geokfp("schedule", toy, "--interval", "6h")
    api.recurring.append({**api.recurring[0], "recurring_run_id": "twin"})
    several = "2 schedules are named 'toy'; allowed: one of their ids, schedule-2, twin"
    for command in (["delete", "toy"], ["pause", "toy"], [str(toy), "--interval", "7h"]):
        ended = geokfp("schedule", *command)
        assert (ended.status, ended.err) == (2, f"geokfp: {several}\n")
    assert geokfp("schedule", "delete", "twin").out == "deleted twin\n"
    assert geokfp("schedule", "delete", "toy").out == "deleted toy\n"
    assert api.recurring == []
    ended = geokfp("schedule", "delete", "toy")
    assert (ended.status, ended.err) == (2, "geokfp: no schedule 'toy'; allowed: none is there\n")


def test_each_profile_has_its_own_schedules(toy: Path, api: PipelinesServer, geokfp: Typed) -> None:
    api.multi_user = True
    assert geokfp("schedule", "list").status == 2
    assert geokfp("schedule", toy, "--interval", "6h", "--namespace", "team").status == 0
    assert "every 6h" in geokfp("schedule", "list", "--namespace", "team").out


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ([], "--cron or --interval: one of the two is needed, not both"),
        (["--cron", "0 3 * * *", "--interval", "6h"], "--cron or --interval: one of the two is needed"),
        (["--cron", "0 25 * * *"], "--cron '0 25 * * *': hour '25'; allowed: 0 to 23"),
        (["--interval", "6h", "--max-concurrency", "0"], "--max-concurrency 0: allowed: 1 to 10"),
        (["--interval", "6h", "--max-concurrency", "11"], "--max-concurrency 11: allowed: 1 to 10"),
        (["--interval", "soon"], "--interval soon: allowed: numbers with w, d, h, m or s"),
        (["--interval", "6h", "-p", "mode=[[Time]]"], "mode=[[Time]]: [[Time]] is no macro; allowed: "),
        (["--interval", "6h", "-p", "sise=3"], "--param sise: toy has no such parameter"),
    ],
)
def test_wrong_usage_is_refused_before_anything_is_sent(
    given: list[str], says: str, toy: Path, api: PipelinesServer, geokfp: Typed
) -> None:
    ended = geokfp("schedule", toy, *given)
    assert ended.status == 2
    assert ended.err.startswith(f"geokfp: {says}")
    assert api.asked == []


def test_a_refusal_is_one_line(toy: Path, api: PipelinesServer, geokfp: Typed) -> None:
    api.fail("POST", "/recurringruns", 500, message="InternalServerError: no space\nstack")
    ended = geokfp("schedule", toy, "--interval", "6h")
    assert ended.status == 1
    assert ended.err == (
        f"geokfp: {api.url}: schedule 'toy': status 500: InternalServerError: no space; "
        "there is no schedule 'toy'\n"
    )
    api.fail("GET", "/recurringruns", 401)
    assert "listing schedules: status 401: it does not know who asks" in geokfp("schedule", "list").err
