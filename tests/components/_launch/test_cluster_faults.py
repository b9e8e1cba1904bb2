"""Each rule for what goes wrong between a launcher and an API server, by a script on a double."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from geokfp.components._launch.errors import ClusterFailed, ProcessFailed
from geokfp.components._launch.kubernetes import unreachable
from geokfp.components._launch.manifests import MANIFESTS, owned
from geokfp.components._launch.object_paths import collection_path
from geokfp.components._launch.pods import PodLaunch, StepPod
from support.api_server import ApiServerDouble
from support.cluster_script import ClusterScript
from support.launched import NAMESPACE, Launched, at, launch, start

ALL = ("root/0", "worker/0", "worker/1")
NAME = launch().name
SERVICES = f"/api/v1/namespaces/{NAMESPACE}/services"
JOBS = f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs"


@pytest.fixture
def server() -> Iterator[ApiServerDouble]:
    with ApiServerDouble() as double:
        yield double


@pytest.fixture
def script(server: ApiServerDouble) -> ClusterScript:
    return ClusterScript(server, NAMESPACE)


def put(server: ApiServerDouble, of: PodLaunch) -> dict[str, Any]:
    """Puts a launch's objects there, as an earlier try would; returns the owner."""
    first, *others = MANIFESTS["job"].objects(of)
    owner = server.store.create(collection_path(first), first)
    for other in others:
        server.store.create(collection_path(other), owned(other, owner))
    return owner


def ends_well(run: Launched, script: ClusterScript) -> None:
    script.start(*ALL)
    script.succeed(*ALL)
    run.result()
    assert [one for one in script.server.store.everything() if one["kind"] not in {"Event", "Pod"}] == []


def failure(run: Launched) -> ProcessFailed:
    with pytest.raises(ProcessFailed) as caught:
        run.result()
    return caught.value


def created(server: ApiServerDouble) -> list[str]:
    return [request.body["metadata"]["name"] for request in server.asked("POST") if request.status == 200]


def test_an_earlier_try_of_the_same_run_is_adopted(
    server: ApiServerDouble, script: ClusterScript, tmp_path: Path
) -> None:
    pods = [
        script.add("v1", "Pod", "pods", name, spec={"containers": []}, status={}) for name in ("old", "new")
    ]
    old, new = (StepPod(name=pod["metadata"]["name"], uid=pod["metadata"]["uid"]) for pod in pods)
    before = put(server, launch(step_pod=old))
    run = start(server, tmp_path, launched=launch(step_pod=new))
    script.wait_for(lambda: run.references, "the adoption")
    assert created(server) == []
    owner = server.store.get(SERVICES, NAME)
    assert owner["metadata"]["uid"] == before["metadata"]["uid"]
    assert [one["uid"] for one in owner["metadata"]["ownerReferences"]] == [old.uid, new.uid]
    assert any(text.startswith("adopted Job") for text in run.texts(NAME))
    ends_well(run, script)


def test_one_that_has_ended_well_meanwhile_is_not_run_again(
    server: ApiServerDouble, script: ClusterScript, tmp_path: Path
) -> None:
    put(server, launch())
    script.start(*ALL)
    script.succeed(*ALL)
    start(server, tmp_path).result()
    assert created(server) == []


def test_one_that_has_failed_while_nobody_watched_is_run_anew(
    server: ApiServerDouble, script: ClusterScript, tmp_path: Path
) -> None:
    before = put(server, launch())
    script.start(*ALL)
    script.fail("worker/0")
    run = start(server, tmp_path)
    script.wait_for(lambda: run.references, "the new objects")
    assert server.store.get(SERVICES, NAME)["metadata"]["uid"] != before["metadata"]["uid"]
    ends_well(run, script)


def test_another_run_of_the_same_name_is_left_alone(
    server: ApiServerDouble, script: ClusterScript, tmp_path: Path
) -> None:
    put(server, launch(run_id="theirs"))
    error = failure(start(server, tmp_path, launched=launch(run_id="ours")))
    assert isinstance(error, ClusterFailed)
    assert error.cause == (
        f"Service {NAMESPACE}/{NAME} is there already, of run 'theirs'; this is run 'ours': "
        "delete it, or wait until that run has ended"
    )
    assert server.asked("DELETE") == []
    assert len(script.pods()) == 3


def test_what_is_about_to_be_collected_is_waited_for_and_not_adopted(
    server: ApiServerDouble, script: ClusterScript, tmp_path: Path
) -> None:
    put(server, launch())
    server.store.collects = False
    server.store.delete(SERVICES, NAME)
    run = start(server, tmp_path)
    script.wait_for(lambda: len(server.asked("POST", "/jobs$")) > 1, "a second try")
    assert created(server) == [NAME]
    server.store.collects = True
    script.wait_for(lambda: run.references, "the new objects")
    ends_well(run, script)


def test_what_is_never_collected_is_told(
    server: ApiServerDouble, script: ClusterScript, tmp_path: Path
) -> None:
    put(server, launch())
    server.store.collects = False
    server.store.delete(SERVICES, NAME)
    error = failure(start(server, tmp_path, gone_s=0.3))
    assert error.cause == f"Job {NAMESPACE}/{NAME}-root of an earlier try is still there after 0.3 s"


@pytest.mark.parametrize("status", [0, 429, 500, 503])
@pytest.mark.parametrize("path", ["/services$", "/jobs$"])
def test_a_creation_that_fails_for_a_moment_is_tried_again(
    server: ApiServerDouble, script: ClusterScript, tmp_path: Path, status: int, path: str
) -> None:
    server.fail("POST", path, status=status, headers={"Retry-After": "0"})
    run = start(server, tmp_path)
    script.wait_for(lambda: run.references, "the creation")
    assert sorted(created(server)) == [NAME, f"{NAME}-root", f"{NAME}-worker"]
    ends_well(run, script)


@pytest.mark.parametrize("status", [0, 504])
def test_a_creation_whose_answer_is_lost_is_not_done_twice(
    server: ApiServerDouble, script: ClusterScript, tmp_path: Path, status: int
) -> None:
    server.fail("POST", "/services$", status=status, carried_out=True)
    server.fail("POST", "/jobs$", status=status, carried_out=True)
    run = start(server, tmp_path)
    script.wait_for(lambda: run.references, "the creation")
    assert len(script.pods()) == 3
    ends_well(run, script)


@pytest.mark.parametrize("status", [0, 429, 500, 503])
def test_a_look_that_fails_for_a_moment_is_taken_again(
    server: ApiServerDouble, script: ClusterScript, tmp_path: Path, status: int
) -> None:
    run = start(server, tmp_path)
    script.start(*ALL)
    for path in (f"/services/{NAME}$", "/jobs/", "/pods$"):
        server.fail("GET", path, status=status, times=2)
    script.wait_for(lambda: not server.faults, "the faults")
    ends_well(run, script)


def test_a_server_that_is_silent_is_asked_again(
    server: ApiServerDouble, script: ClusterScript, tmp_path: Path
) -> None:
    run = start(server, tmp_path, request_s=2)
    script.start(*ALL)
    server.fail("GET", "/pods$", delay_s=3)
    script.wait_for(lambda: not server.faults, "the fault")
    ends_well(run, script)


def test_a_server_that_fails_for_good_is_given_up(
    server: ApiServerDouble, script: ClusterScript, tmp_path: Path
) -> None:
    run = start(server, tmp_path, retry_s=0.3)
    script.start(*ALL)
    server.fail("GET", "/jobs/", status=503, reason="ServiceUnavailable", times=1000)
    error = failure(run)
    assert isinstance(error, ClusterFailed)
    assert "503 ServiceUnavailable" in error.cause
    assert len(server.asked("DELETE", SERVICES)) == 1


def test_a_deletion_that_fails_for_a_moment_is_tried_again(
    server: ApiServerDouble, script: ClusterScript, tmp_path: Path
) -> None:
    server.fail("DELETE", "/services/", status=503, times=2)
    ends_well(start(server, tmp_path), script)
    assert [request.status for request in server.asked("DELETE")] == [503, 503, 200]


def test_what_cannot_be_deleted_is_said_and_does_not_hide_the_end(
    server: ApiServerDouble, script: ClusterScript, tmp_path: Path
) -> None:
    server.fail("DELETE", "/services/", status=403, reason="Forbidden", times=1000)
    run = start(server, tmp_path)
    script.start(*ALL)
    script.fail("worker/0", exitCode=7)
    assert failure(run).cause == "ended with exit status 7"
    assert any(
        "could not be deleted, or not be seen to go: 403 Forbidden" in text for text in run.texts(NAME)
    )


def test_a_new_token_is_read_when_the_old_one_is_refused(
    server: ApiServerDouble, script: ClusterScript, tmp_path: Path
) -> None:
    run = start(server, tmp_path)
    script.start(*ALL)
    (tmp_path / "double" / "token").write_text("second", encoding="utf-8")
    server.token = "second"
    ends_well(run, script)
    refused = [request for request in server.requests if request.status == 401]
    assert refused
    assert [request.status for request in server.asked("DELETE")] == [200]


def test_a_token_that_stays_refused_ends_the_launch(
    server: ApiServerDouble, script: ClusterScript, tmp_path: Path
) -> None:
    run = start(server, tmp_path)
    script.start(*ALL)
    server.token = "second"
    assert "401 Unauthorized" in failure(run).cause


def test_a_right_that_is_missing_is_told(
    server: ApiServerDouble, script: ClusterScript, tmp_path: Path
) -> None:
    server.rules = [{"apiGroups": [""], "resources": ["services"], "verbs": ["create", "get", "delete"]}]
    error = failure(start(server, tmp_path))
    assert f"Job {NAMESPACE}/{NAME}-root cannot be created: 403 Forbidden: cannot create" in error.cause
    assert "`geokfp manifests`" in error.cause
    assert server.store.everything() == []


def test_a_kind_that_the_cluster_does_not_know_is_told(
    server: ApiServerDouble, script: ClusterScript, tmp_path: Path
) -> None:
    server.unknown_plurals.add("jobsets")
    error = failure(start(server, tmp_path, "jobset"))
    assert error.cause.endswith("does the cluster know the kind JobSet of jobset.x-k8s.io/v1alpha2?")


def test_an_object_that_the_server_refuses_is_told(
    server: ApiServerDouble, script: ClusterScript, tmp_path: Path
) -> None:
    server.fail("POST", "/jobs$", status=422, reason="Invalid")
    error = failure(start(server, tmp_path))
    assert f"Job {NAMESPACE}/{NAME}-root cannot be created: 422 Invalid" in error.cause
    assert server.store.everything() == []


@pytest.mark.parametrize("as_event", [True, False])
def test_a_watch_from_a_version_that_is_forgotten_begins_anew(
    server: ApiServerDouble, script: ClusterScript, tmp_path: Path, as_event: bool
) -> None:
    server.gone_as_event = as_event
    run = start(server, tmp_path, poll_s=600, max_poll_s=600)
    script.start(*ALL)
    script.wait_for(lambda: server.asked("GET", "/pods$", watch="true"), "a watch")
    lists = len(server.asked("GET", "/pods$"))
    server.store.forget_versions()
    server.cut_streams()
    script.wait_for(lambda: len(server.asked("GET", "/pods$", watch="true")) > 2, "a watch of a new list")
    assert len(server.asked("GET", "/pods$")) > lists
    ends_well(run, script)  # within a test's time, so the watch has told


def test_watches_that_are_cut_go_on_from_where_they_were(
    server: ApiServerDouble, script: ClusterScript, tmp_path: Path
) -> None:
    run = start(server, tmp_path, poll_s=600, max_poll_s=600)
    for replica in ALL:
        script.start(replica)
        watches = len(server.asked("GET", "/pods$", watch="true"))
        server.cut_streams()
        script.wait_for(
            lambda: len(server.asked("GET", "/pods$", watch="true")) > watches,  # noqa: B023
            "a new watch",
        )
    ends_well(run, script)


def test_without_watches_the_looks_are_enough(
    server: ApiServerDouble, script: ClusterScript, tmp_path: Path
) -> None:
    server.fail("GET", "", status=403, watches=True, times=1000)
    ends_well(start(server, tmp_path), script)


def test_slow_watches_hold_nothing_up(server: ApiServerDouble, script: ClusterScript, tmp_path: Path) -> None:
    server.fail("GET", "", delay_s=60, watches=True, times=1000)
    ends_well(start(server, tmp_path), script)


def test_logs_that_are_cut_lose_nothing_and_repeat_nothing(
    server: ApiServerDouble, script: ClusterScript, tmp_path: Path
) -> None:
    run = start(server, tmp_path)
    script.start(*ALL)
    for number in range(4):
        script.log("worker/0", f"line {number} a", f"line {number} b")
        script.wait_for(lambda: len(run.texts("worker/0")) == 2 * number + 2, "the lines")  # noqa: B023
        server.cut_streams()
    script.log("worker/0", "the last words")
    script.succeed(*ALL)
    run.result()
    expected = [f"line {number} {letter}" for number in range(4) for letter in "ab"]
    assert run.texts("worker/0") == [*expected, "the last words"]


def test_a_log_that_is_refused_for_a_moment_is_asked_for_again(
    server: ApiServerDouble, script: ClusterScript, tmp_path: Path
) -> None:
    server.fail("GET", "/log$", status=500, times=3)
    run = start(server, tmp_path)
    script.start(*ALL)
    for replica in ALL:
        script.log(replica, f"I am {replica}")
    script.wait_for(lambda: all(run.texts(replica) for replica in ALL), "all logs")
    ends_well(run, script)


def test_events_that_may_not_be_read_are_said_to_be_missing(
    server: ApiServerDouble, script: ClusterScript, tmp_path: Path
) -> None:
    server.fail("GET", "/events$", status=403, reason="Forbidden")
    run = start(server, tmp_path)
    script.start(*ALL)
    script.fail("worker/1")
    (line,) = failure(run).last_lines
    assert line.startswith("events of")
    assert "403 Forbidden" in line


def test_whether_a_cluster_can_be_reached(server: ApiServerDouble, tmp_path: Path) -> None:
    cluster = at(server, tmp_path, "oslo")
    assert unreachable(cluster, NAMESPACE, 10) == ""
    server.fail("GET", "/pods$", status=403, reason="Forbidden")
    assert unreachable(cluster, NAMESPACE, 10).startswith("cluster oslo: 403 Forbidden")
    server.fail("GET", "/pods$")
    assert unreachable(cluster, NAMESPACE, 10).startswith("cluster oslo: no answer")
