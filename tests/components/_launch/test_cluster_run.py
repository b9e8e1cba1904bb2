"""Launches on a double of a cluster: how they end, what is told, and that nothing is left of them."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from geokfp.components._files import InputError
from geokfp.components._launch.cluster_run import Cluster, Placed, WatchSettings, run_on_clusters
from geokfp.components._launch.errors import ClusterFailed, ProcessFailed
from geokfp.components._launch.pods import StepPod
from support.api_server import ApiServerDouble
from support.cluster_script import ClusterScript
from support.launched import NAMESPACE, Launched, at, launch, quick, start
from support.pod_launches import pod_group

ALL = ("root/0", "worker/0", "worker/1")
NAME = launch().name


@pytest.fixture
def server() -> Iterator[ApiServerDouble]:
    with ApiServerDouble() as double:
        yield double


@pytest.fixture
def script(server: ApiServerDouble) -> ClusterScript:
    return ClusterScript(server, NAMESPACE)


def left(server: ApiServerDouble) -> list[str]:
    """What is there still; events stay for an hour wherever they are."""
    found = [one for one in server.store.everything() if one["kind"] != "Event"]
    return [f"{one['kind']} {one['metadata']['name']}" for one in found]


def failure(run: Launched) -> ProcessFailed:
    with pytest.raises(ProcessFailed) as caught:
        run.result()
    return caught.value


@pytest.mark.parametrize("kind", ["job", "jobset"])
def test_a_launch_runs_to_its_end_and_leaves_nothing(
    server: ApiServerDouble, script: ClusterScript, tmp_path: Path, kind: str
) -> None:
    run = start(server, tmp_path, kind)
    script.start(*ALL)
    script.log("worker/1", "plain words", "[geokfp     2.0 s] epoch 1")
    script.wait_for(lambda: "epoch 1" in run.texts("worker/1"), "the log")
    script.succeed(*ALL)
    if kind == "jobset":
        script.condition("jobsets", "jobset.x-k8s.io/v1alpha2", "Completed")
    run.result()
    assert run.texts("worker/1") == ["plain words", "epoch 1"]
    assert not run.beats.empty()
    assert left(server) == []
    (deletion,) = server.asked("DELETE")
    assert deletion.path.endswith(f"/services/{NAME}")
    assert deletion.body["propagationPolicy"] == "Background"


def test_the_owner_comes_first_and_is_named_by_all_others(
    server: ApiServerDouble, script: ClusterScript, tmp_path: Path
) -> None:
    step = script.add("v1", "Pod", "pods", "step-pod", spec={"containers": []}, status={"phase": "Running"})
    step_pod = StepPod(name="step-pod", uid=step["metadata"]["uid"])
    run = start(server, tmp_path, launched=launch(step_pod=step_pod))
    script.pod("worker/1")
    first, *others = [request.body for request in server.asked("POST")]
    assert first["kind"] == "Service"
    assert first["metadata"]["ownerReferences"] == [
        {"apiVersion": "v1", "kind": "Pod", "name": "step-pod", "uid": step["metadata"]["uid"]}
    ]
    owner = server.store.get(f"/api/v1/namespaces/{NAMESPACE}/services", NAME)
    for other in others:
        assert other["metadata"]["ownerReferences"] == [
            {"apiVersion": "v1", "kind": "Service", "name": NAME, "uid": owner["metadata"]["uid"]}
        ]
    script.succeed(*ALL)
    run.result()
    assert left(server) == ["Pod step-pod"]


def test_the_reference_is_told_before_the_end_is_waited_for(
    server: ApiServerDouble, script: ClusterScript, tmp_path: Path
) -> None:
    run = start(server, tmp_path)
    script.wait_for(lambda: run.references, "the reference")
    job = server.store.get(f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs", f"{NAME}-root")
    (reference,) = run.references
    assert reference["kind"], reference["apiVersion"] == ("Job", "batch/v1")
    assert (reference["namespace"], reference["name"]) == (NAMESPACE, f"{NAME}-root")
    assert reference["uid"] == job["metadata"]["uid"]
    assert reference["owner"]["name"] == NAME
    assert len(reference["pods"]) == 3
    script.succeed(*ALL)
    run.result()


def test_a_failed_replica_is_told_with_its_cause_its_last_lines_and_its_events(
    server: ApiServerDouble, script: ClusterScript, tmp_path: Path
) -> None:
    run = start(server, tmp_path)
    script.start(*ALL)
    script.log("worker/1", "reading", "ValueError: no such part")
    script.event(script.pod("worker/1"), "BackOff", "restarting", count=3)
    script.event(script.pod("worker/0"), "Other", "not this one")
    script.wait_for(lambda: len(run.texts("worker/1")) == 2, "the log")
    script.fail("worker/1", exitCode=3, message="first\npod worker-1 failed: ValueError: no such part\n")
    error = failure(run)
    assert error.replica == "worker/1"
    assert error.cause == "ended with exit status 3: ValueError: no such part"
    assert error.last_lines == (
        "reading",
        "ValueError: no such part",
        "event Warning BackOff: restarting (3 times)",
    )
    told = run.texts(NAME)
    assert any(line.startswith("replica") and "restarts" in line for line in told)
    assert any(line.startswith("worker/1") and "ended with exit status 3" in line for line in told)
    assert left(server) == []


@pytest.mark.parametrize(
    "reason", ["ImagePullBackOff", "ErrImagePull", "InvalidImageName", "CreateContainerConfigError"]
)
def test_a_container_that_cannot_start_fails_at_once(
    server: ApiServerDouble, script: ClusterScript, tmp_path: Path, reason: str
) -> None:
    run = start(server, tmp_path)
    script.start("root/0", "worker/0")
    script.waiting("worker/1", reason, 'cannot have "no-such-image"')
    error = failure(run)
    assert (error.replica, error.cause) == ("worker/1", f'{reason}: cannot have "no-such-image"')
    assert left(server) == []


def test_an_image_that_is_pulled_at_the_second_try_is_waited_for(
    server: ApiServerDouble, script: ClusterScript, tmp_path: Path
) -> None:
    run = start(server, tmp_path, pull_patience_s=30)
    script.waiting("worker/1", "ErrImagePull", "the registry is busy")
    looks = len(server.asked("GET", "/pods$"))
    script.wait_for(lambda: len(server.asked("GET", "/pods$")) > looks + 2, "two looks")
    script.start(*ALL)
    script.succeed(*ALL)
    run.result()
    assert left(server) == []


def test_too_much_memory_is_told_with_the_limit(
    server: ApiServerDouble, script: ClusterScript, tmp_path: Path
) -> None:
    run = start(server, tmp_path, launched=launch(limited_group()))
    script.start("worker/0")
    script.fail("worker/0", exitCode=137, reason="OOMKilled")
    error = failure(run)
    assert (error.replica, error.cause) == ("worker/0", "OOMKilled: it took more memory than 8Gi")


def limited_group() -> object:
    from support.pod_launches import SETTINGS

    return pod_group("worker", 1, settings=SETTINGS)


def test_a_pod_that_no_node_takes_fails_after_the_start_timeout(
    server: ApiServerDouble, script: ClusterScript, tmp_path: Path
) -> None:
    script.at_birth = {replica: partial(script.start, replica) for replica in ("root/0", "worker/0")}
    words = "0/3 nodes are available: 3 Insufficient nvidia.com/gpu."
    script.at_birth["worker/1"] = partial(script.unschedulable, "worker/1", words)
    error = failure(start(server, tmp_path, start_timeout_s=0.4))
    assert error.replica == "worker/1"
    assert error.cause == f"it has not started after 0.4 s; Unschedulable: {words}"


def test_pods_that_nobody_makes_fail_after_the_start_timeout(
    server: ApiServerDouble, script: ClusterScript, tmp_path: Path
) -> None:
    server.store.on_create = lambda key, document: None
    script.event(f"{NAME}-root", "FailedCreate", "exceeded quota: pods")
    run = start(server, tmp_path, start_timeout_s=0.3)
    error = failure(run)
    assert error.cause.startswith("0 of its 3 pods exist after 0.3 s")
    assert "event Warning FailedCreate: exceeded quota: pods" in error.last_lines


def test_the_cause_is_told_and_not_what_it_did_to_others(
    server: ApiServerDouble, script: ClusterScript, tmp_path: Path
) -> None:
    run = start(server, tmp_path, others_s=10)
    script.start(*ALL)
    script.fail("worker/0", message="RuntimeError: Connection closed by peer")
    looks = len(server.asked("GET", "/pods$"))
    script.wait_for(lambda: len(server.asked("GET", "/pods$")) > looks + 1, "a look")
    script.fail("worker/1", exitCode=137, reason="OOMKilled")
    assert failure(run).replica == "worker/1"


def test_an_object_that_somebody_deletes_ends_the_launch(
    server: ApiServerDouble, script: ClusterScript, tmp_path: Path
) -> None:
    run = start(server, tmp_path)
    script.start(*ALL)
    server.store.delete(f"/api/v1/namespaces/{NAMESPACE}/services", NAME)
    assert "deleted by somebody else" in failure(run).cause
    assert left(server) == []


def test_a_pod_that_vanishes_ends_the_launch(
    server: ApiServerDouble, script: ClusterScript, tmp_path: Path
) -> None:
    run = start(server, tmp_path)
    script.start(*ALL)
    script.wait_for(lambda: any("3 Running" in text for text in run.texts(NAME)), "a look")
    server.store.delete(f"/api/v1/namespaces/{NAMESPACE}/pods", script.pod("worker/0"))
    error = failure(run)
    assert error.replica == "worker/0"
    assert "was deleted" in error.cause


def test_a_job_past_its_deadline_is_told(
    server: ApiServerDouble, script: ClusterScript, tmp_path: Path
) -> None:
    run = start(server, tmp_path)
    script.start(*ALL)
    script.condition(
        "jobs", "batch/v1", "Failed", reason="DeadlineExceeded", message="Job was active too long"
    )
    assert failure(run).cause == "DeadlineExceeded: Job was active too long"


def test_the_first_failure_ends_all_clusters(
    server: ApiServerDouble, script: ClusterScript, tmp_path: Path
) -> None:
    with ApiServerDouble(token="other") as other:
        other_script = ClusterScript(other, NAMESPACE)
        placed = [
            Placed(launch=launch(), kind="job", cluster=at(server, tmp_path, "lund")),
            Placed(launch=launch(), kind="job", cluster=at(other, tmp_path, "oslo")),
        ]
        run = Launched(placed, quick())
        script.start(*ALL)
        other_script.start(*ALL)
        script.wait_for(lambda: len(run.references) == 2, "both references")
        other_script.fail("worker/0", exitCode=9)
        error = failure(run)
        assert error.replica == "oslo/worker/0"
        assert left(server) == []
        assert left(other) == []
        assert {reference["cluster"] for reference in run.references} == {"lund", "oslo"}


def test_what_the_caller_raises_ends_the_launch(server: ApiServerDouble, tmp_path: Path) -> None:
    ClusterScript(server, NAMESPACE)

    def refuse(*line: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_on_clusters(
            [Placed(launch=launch(), kind="job", cluster=at(server, tmp_path))],
            on_line=lambda *line: None,
            beat=lambda: None,
            on_created=refuse,
            settings=quick(),
        )
    assert left(server) == []


def test_credentials_that_are_not_there_are_refused(tmp_path: Path) -> None:
    placed = Placed(launch=launch(), kind="job", cluster=Cluster(kubeconfig=str(tmp_path / "none")))
    with pytest.raises(InputError, match="none"):
        run_on_clusters([placed], on_line=lambda *line: None, beat=lambda: None)


def test_outside_of_a_pod_there_is_no_cluster_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    with pytest.raises(InputError, match="this pod's own"):
        run_on_clusters([Placed(launch=launch(), kind="job")], on_line=lambda *line: None, beat=lambda: None)


def test_a_context_that_is_not_there_is_refused(server: ApiServerDouble, tmp_path: Path) -> None:
    cluster = Cluster(kubeconfig=server.kubeconfig(tmp_path), context="elsewhere")
    with pytest.raises(InputError, match="elsewhere"):
        run_on_clusters(
            [Placed(launch=launch(), kind="job", cluster=cluster)],
            on_line=lambda *line: None,
            beat=lambda: None,
        )


def test_a_kind_that_no_cluster_runs_is_refused() -> None:
    with pytest.raises(InputError, match="launcher is 'local', allowed on a cluster: job, jobset"):
        Placed(launch=launch(), kind="local")


@pytest.mark.parametrize("name", ["poll_s", "start_timeout_s", "termination_s"])
def test_settings_are_more_than_nothing(name: str) -> None:
    with pytest.raises(InputError, match=f"{name} is 0, allowed: more than 0 s"):
        WatchSettings(**{name: 0})


def test_the_longest_pause_is_no_shorter_than_the_first() -> None:
    with pytest.raises(InputError, match="max_poll_s is 1, allowed: at least poll_s"):
        WatchSettings(max_poll_s=1)


def test_a_server_that_does_not_answer_at_the_start_is_named(tmp_path: Path) -> None:
    with ApiServerDouble() as server:
        cluster = at(server, tmp_path, "oslo")
    with pytest.raises(ClusterFailed, match=r"cluster oslo: .*no answer") as caught:
        run_on_clusters(
            [Placed(launch=launch(), kind="job", cluster=cluster)],
            on_line=lambda *line: None,
            beat=lambda: None,
            settings=quick(reach_s=0.3),
        )
    assert caught.value.cluster == "oslo"
