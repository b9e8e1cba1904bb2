"""What is made of a cluster's documents: no server, no clock but the numbers that are given."""

from typing import Any

import pytest
from geokfp.components._launch.cluster import WatchSettings
from geokfp.components._launch.cluster_verdict import Judge, Verdict, outcome
from geokfp.components._launch.pod_states import bad_end, replica_name, state, table
from support.pod_launches import pod_group, pod_launch

SETTINGS = WatchSettings(pull_patience_s=10, others_s=5, start_timeout_s=100)
OWNER = "Service geo/train"
JOB = "Job geo/train-worker"


def pod(index: int, phase: str = "Running", *, uid: str = "", **status: Any) -> dict[str, Any]:
    container = {"name": "geokfp", "env": [{"name": "GEOKFP_GROUP", "value": "worker"}]}
    return {
        "metadata": {
            "name": f"train-worker-{index}-abcde",
            "uid": uid or f"uid-{index}",
            "annotations": {"batch.kubernetes.io/job-completion-index": str(index)},
        },
        "spec": {"containers": [container], "nodeName": "node-a"},
        "status": {"phase": phase, **status},
    }


def ended(
    index: int, *, code: int = 1, reason: str = "Error", at: str = "", message: str = ""
) -> dict[str, Any]:
    state = {"terminated": {"exitCode": code, "reason": reason, "finishedAt": at, "message": message}}
    return pod(index, "Failed" if code else "Succeeded", containerStatuses=[{"state": state}])


def waits(index: int, reason: str) -> dict[str, Any]:
    return pod(index, "Pending", containerStatuses=[{"state": {"waiting": {"reason": reason}}}])


def document(kind: str = "Job", *conditions: tuple[str, str], phase: str = "") -> dict[str, Any]:
    told = [{"type": name, "status": "True", "reason": reason} for name, reason in conditions]
    status: dict[str, Any] = {"conditions": told} if told else {}
    return {
        "kind": kind,
        "metadata": {"name": "x"},
        "status": {**status, **({"phase": phase} if phase else {})},
    }


def judge(kind: str = "job", num_pods: int = 2) -> Judge:
    return Judge(pod_launch(pod_group("worker", num_pods)), kind, SETTINGS, 0.0)


def objects(job: Any = None, *, owner: Any = None) -> dict[str, Any]:
    return {OWNER: owner or document("Service"), JOB: job or document()}


def test_it_runs_while_nothing_has_ended() -> None:
    assert judge().verdict(objects(), [pod(0), pod(1)], 50).state == "running"


@pytest.mark.parametrize(
    ("kind", "condition"), [("Job", "Complete"), ("JobSet", "Completed"), ("TrainJob", "Complete")]
)
def test_it_succeeds_when_its_object_says_so(kind: str, condition: str) -> None:
    found = objects(document(kind, (condition, "")))
    assert judge(kind.lower()).verdict(found, [], 1).state == "succeeded"


def test_an_object_that_is_gone_after_its_end_is_complete() -> None:
    one = Judge(pod_launch(pod_group("a", 1), pod_group("b", 1)), "job", SETTINGS, 0.0)
    first = {OWNER: document("Service"), "Job a": document("Job", ("Complete", "")), "Job b": document()}
    assert one.verdict(first, [pod(0)], 1).state == "running"
    later = {**first, "Job a": None, "Job b": document("Job", ("Complete", ""))}
    assert one.verdict(later, [pod(0)], 2).state == "succeeded"


def test_a_dgl_job_ends_when_all_its_pods_have() -> None:
    one = judge("dgljob")
    complete = objects(document("DGLJob", phase="Completed"))
    assert one.verdict(complete, [ended(0, code=0), pod(1)], 1).state == "running"
    pending = objects(document("DGLJob", phase="Pending"))
    assert one.verdict(pending, [ended(0, code=0), ended(1, code=0)], 2).state == "succeeded"


def test_a_dgl_jobs_partitioner_is_no_replica() -> None:
    partitioner = ended(7, code=1)
    partitioner["metadata"]["labels"] = {"dgl-replica-type": "Partitioner"}
    assert judge("dgljob").verdict(objects(), [pod(0), pod(1), partitioner], 1).state == "running"


@pytest.mark.parametrize("phase", ["Failed", "Evicted"])
def test_a_dgl_job_fails_by_its_phase(phase: str) -> None:
    one = judge("dgljob")
    found = objects(document("DGLJob", phase=phase))
    assert one.verdict(found, [pod(0), pod(1)], 1) == Verdict(state="running", look_again=True)
    assert one.verdict(found, [pod(0), pod(1)], 6.5).cause == f"its phase is {phase}"


def test_an_image_that_cannot_be_pulled_is_waited_for_a_while() -> None:
    one = judge()
    assert one.verdict(objects(), [waits(0, "ErrImagePull")], 1).state == "running"
    assert one.verdict(objects(), [waits(0, "ImagePullBackOff")], 10).state == "running"
    assert one.verdict(objects(), [waits(0, "ImagePullBackOff")], 11).state == "failed"


def test_an_image_that_comes_at_last_starts_the_wait_anew() -> None:
    one = judge()
    one.verdict(objects(), [waits(0, "ErrImagePull")], 1)
    one.verdict(objects(), [waits(0, "ContainerCreating")], 5)
    assert one.verdict(objects(), [waits(0, "ErrImagePull")], 12).state == "running"


@pytest.mark.parametrize("reason", ["InvalidImageName", "CreateContainerConfigError"])
def test_what_no_waiting_helps_is_not_waited_for(reason: str) -> None:
    verdict = judge().verdict(objects(), [pod(0), waits(1, reason)], 0)
    assert (verdict.state, verdict.replica, verdict.cause) == ("failed", "worker/1", reason)


def test_the_first_bad_end_is_the_cause() -> None:
    pods = [ended(0, code=2, at="2026-01-01T00:00:02Z"), ended(1, code=3, at="2026-01-01T00:00:01Z")]
    verdict = judge().verdict(objects(), pods, 1)
    assert (verdict.replica, verdict.cause) == ("worker/1", "ended with exit status 3")
    assert verdict.pod == "train-worker-1-abcde"


def test_an_end_that_another_explains_is_told_when_no_other_comes() -> None:
    one = judge()
    lost = ended(0, message="ConnectionError: connection closed")
    assert one.verdict(objects(), [lost, pod(1)], 1) == Verdict(state="running", look_again=True)
    assert one.verdict(objects(), [lost, pod(1)], 6).replica == "worker/0"


def test_a_failed_object_waits_for_its_pods_word() -> None:
    one = judge()
    failed = objects(document("Job", ("Failed", "BackoffLimitExceeded")))
    assert one.verdict(failed, [pod(0), pod(1)], 1).look_again
    verdict = one.verdict(failed, [pod(0), ended(1, code=137)], 2)
    assert (verdict.replica, verdict.cause) == ("worker/1", "killed by SIGKILL")


def test_a_failed_object_alone_is_told_in_the_end() -> None:
    one = judge()
    failed = objects(document("JobSet", ("Failed", "FailedJobs")))
    assert one.verdict(failed, [pod(0), pod(1)], 1).state == "running"
    verdict = one.verdict(failed, [pod(0), pod(1)], 6)
    assert (verdict.replica, verdict.cause) == (JOB, "FailedJobs")


def test_a_deadline_is_told_at_once_although_its_pods_are_gone() -> None:
    one = judge()
    one.verdict(objects(), [pod(0), pod(1)], 1)
    failed = objects(document("Job", ("Failed", "DeadlineExceeded")))
    assert one.verdict(failed, [], 2).cause == "DeadlineExceeded"


@pytest.mark.parametrize("ending", [True, False])
def test_an_owner_that_is_deleted_ends_it(ending: bool) -> None:
    owner = document("Service")
    owner["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    found = {**objects(owner=owner), **({} if ending else {OWNER: None})}
    verdict = judge().verdict(found, [pod(0), pod(1)], 1)
    assert (verdict.state, verdict.replica) == ("failed", OWNER)


def test_an_object_that_is_deleted_ends_it() -> None:
    found = {**objects(), JOB: None}
    assert judge().verdict(found, [pod(0), pod(1)], 1).replica == JOB


def test_a_pod_that_another_replaces_ends_it() -> None:
    one = judge()
    one.verdict(objects(), [pod(0), pod(1)], 1)
    replaced = [pod(0), pod(1, "Pending", uid="uid-new")]
    assert one.verdict(objects(), replaced, 2).look_again
    verdict = one.verdict(objects(), replaced, 7)
    assert verdict.replica == "worker/1"
    assert "train-worker-1-abcde was deleted" in verdict.cause


def test_pods_that_have_ended_well_may_go() -> None:
    one = judge()
    one.verdict(objects(), [pod(0), ended(1, code=0)], 1)
    assert one.verdict(objects(), [pod(0)], 20).state == "running"


def test_pods_that_have_started_once_are_not_late() -> None:
    one = judge()
    one.verdict(objects(), [pod(0), pod(1)], 1)
    assert one.verdict(objects(), [pod(0), pod(1)], 1000).state == "running"


def test_pods_that_have_not_started_are_late() -> None:
    one = judge()
    pods = [pod(0), waits(1, "ContainerCreating")]
    assert one.verdict(objects(), pods, 99).state == "running"
    verdict = one.verdict(objects(), pods, 100)
    assert verdict.cause == "it has not started after 100 s; ContainerCreating"


def test_an_eviction_is_told_with_its_reason() -> None:
    evicted = pod(0, "Failed", reason="Evicted", message="The node was low on resource: memory.")
    assert bad_end(evicted) == "Evicted: The node was low on resource: memory."


def test_a_container_that_was_started_again_has_ended_badly() -> None:
    last = {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}
    status = {"state": {"running": {}}, "lastState": last, "restartCount": 1}
    assert bad_end(pod(0, containerStatuses=[status])) == "OOMKilled: it took more memory than its node had"


def test_a_container_that_ended_well_has_not_ended_badly() -> None:
    assert bad_end(ended(0, code=0, reason="Completed")) == ""


@pytest.mark.parametrize(
    ("name", "index"),
    [("train-worker-launcher", "0"), ("train-worker-worker-0", "1"), ("train-x", "train-x")],
)
def test_a_dgl_jobs_pod_is_numbered_by_its_name(name: str, index: str) -> None:
    one = pod(0)
    one["metadata"] = {"name": name, "uid": "1"}
    assert replica_name(one) == f"worker/{index}"


def test_the_table_shows_who_is_where_and_how() -> None:
    unschedulable = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    pods = [ended(1, code=137, reason="OOMKilled"), pod(0), pod(2, "Pending", conditions=[unschedulable])]
    assert table(pods) == [
        "replica   pod                   state          restarts  node",
        "worker/0  train-worker-0-abcde  Running        0         node-a",
        "worker/1  train-worker-1-abcde  OOMKilled      0         node-a",
        "worker/2  train-worker-2-abcde  Unschedulable  0         node-a",
    ]


def test_a_pod_that_is_being_deleted_is_shown_so() -> None:
    one = pod(0)
    one["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert state(one) == "Terminating"


def test_conditions_that_do_not_hold_say_nothing() -> None:
    found = document("Job", ("Suspended", ""))
    found["status"]["conditions"].append({"type": "Failed", "status": "False"})
    assert outcome(found) == ("", "")
