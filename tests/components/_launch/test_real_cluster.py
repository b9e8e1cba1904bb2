"""The launcher at a real API server with exactly the rights shipped; tests play nodes and operators."""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from geokfp.components._launch.api_errors import ApiError
from geokfp.components._launch.cluster_run import Placed
from geokfp.components._launch.errors import ClusterFailed, ProcessFailed
from geokfp.components._launch.kubernetes import ApiServer
from geokfp.components._launch.manifests.access import rights
from geokfp.components._launch.object_paths import collection_path, kind_path, object_path
from geokfp.components._launch.pod_states import replica_name
from geokfp.components._launch.pods import PodLaunch
from support.api_server import ApiServerDouble
from support.cluster_script import ClusterScript
from support.launched import Launched, launch, quick
from support.pod_launches import pod_group
from support.real_cluster import RealCluster, real_cluster, wait_for

pytestmark = pytest.mark.long

TESTS = Path(__file__).parents[2]
ACCOUNT = "system:serviceaccount:geo:pipeline-runner"
STRANGER = "system:serviceaccount:geo:default"
JOBS = {
    "job": ("batch/v1", "Job"),
    "jobset": ("jobset.x-k8s.io/v1alpha2", "JobSet"),
    "trainjob": ("trainer.kubeflow.org/v1alpha1", "TrainJob"),
    "dgljob": ("qihoo.net/v1alpha1", "DGLJob"),
}
KINDS = tuple(JOBS)
CUSTOM_KINDS = KINDS[1:]
OWNED = [("v1", "Service"), ("v1", "Pod"), *JOBS.values()]


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealCluster]:
    with real_cluster(tmp_path_factory.mktemp("real"), [ACCOUNT, STRANGER]) as cluster:
        api = cluster.api()
        api.request(
            "POST",
            "/api/v1/namespaces",
            body={"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "geo"}},
        )
        for kind in CUSTOM_KINDS:
            path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
            api.request("POST", path, body=custom_kind(*JOBS[kind]))
        shipped = rights(KINDS, namespace="geo", account="pipeline-runner", account_namespace="geo")
        for document in shipped:
            plural = document["kind"].lower() + "s"
            api.request("POST", f"/apis/rbac.authorization.k8s.io/v1/namespaces/geo/{plural}", body=document)
        for kind in CUSTOM_KINDS:
            wait_for(lambda: listed(api, *JOBS[kind]) is not None, f"the kind {kind}")  # noqa: B023
        yield cluster
        api.close()


@pytest.fixture
def api(real: RealCluster) -> Iterator[ApiServer]:
    one = real.api()
    yield one
    one.close()


def custom_kind(api_version: str, kind: str) -> dict[str, Any]:
    """An operator's own kind by group, version and names; its fields are left open."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    group, _, version = api_version.partition("/")
    served = {"name": version, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{kind.lower()}s.{group}",
            "annotations": {"api-approved.kubernetes.io": "unapproved, a test"},
        },
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {
                "kind": kind,
                "plural": f"{kind.lower()}s",
                "singular": kind.lower(),
                "listKind": f"{kind}List",
            },
            "versions": [served],
        },
    }


def listed(api: ApiServer, api_version: str, kind: str) -> list[dict[str, Any]] | None:
    try:
        return list(api.request("GET", kind_path(api_version, kind, "geo"))["items"])
    except ApiError as error:
        if error.status != 404:
            raise
        return None


def pods(api: ApiServer, count: int) -> list[dict[str, Any]]:
    """Waits for a launch's pods; returns them."""
    return list(
        wait_for(lambda: len(found := listed(api, "v1", "Pod") or []) == count and found, f"{count} pods")
    )


def play_operator(api: ApiServer, kind: str) -> None:
    """Makes the pods of custom jobs as their operators would, after the double's script."""
    for job in listed(api, *JOBS[kind]) or []:
        with ApiServerDouble() as double:
            script = ClusterScript(double, "geo")
            double.store.create(collection_path(job), job)
            made = script.pods()
        for pod in made:
            for name in ("uid", "resourceVersion"):
                del pod["metadata"][name]
            pod["metadata"]["ownerReferences"][0]["uid"] = job["metadata"]["uid"]
            api.request("POST", kind_path("v1", "Pod", "geo"), body=pod)


def end_pods(api: ApiServer, found: list[dict[str, Any]], code: int = 0) -> None:
    """Has pods end, as their nodes would say it."""
    for pod in found:
        terminated = {"exitCode": code, "reason": "Error" if code else "Completed"}
        status = {
            "phase": "Failed" if code else "Succeeded",
            "containerStatuses": [
                {
                    "name": pod["spec"]["containers"][0]["name"],
                    "image": "x",
                    "imageID": "",
                    "ready": False,
                    "restartCount": 0,
                    "state": {"terminated": terminated},
                }
            ],
        }
        path = f"{kind_path('v1', 'Pod', 'geo')}/{pod['metadata']['name']}/status"
        api.request("PATCH", path, body={"status": status})


def complete(api: ApiServer, kind: str) -> None:
    """Has custom jobs say that they are complete; DGLJobs are judged by their pods."""
    told = {"jobset": "Completed", "trainjob": "Complete"}.get(kind)
    for job in (told and listed(api, *JOBS[kind])) or []:
        status = {"conditions": [{"type": told, "status": "True", "reason": "Test"}]}
        api.request("PATCH", object_path(job), body={"status": status})


def nothing_left(api: ApiServer) -> None:
    wait_for(lambda: not any(listed(api, *kind) for kind in OWNED), "the collection of what the owner owned")


def start(
    real: RealCluster, kind: str, of: PodLaunch | None = None, *, user: str = ACCOUNT, **settings: float
) -> Launched:
    placed = Placed(launch=of or launch(), kind=kind, cluster=real.cluster(user))
    return Launched([placed], quick(**settings))


def make_pods(api: ApiServer, kind: str) -> list[dict[str, Any]]:
    """Waits for a launch's objects, and returns its pods."""
    count = 1 if kind == "jobset" else 2
    wait_for(lambda: len(listed(api, *JOBS[kind]) or []) == count, f"all objects of {kind}")
    if kind in CUSTOM_KINDS:
        play_operator(api, kind)
    return pods(api, 3)


@pytest.mark.parametrize("kind", KINDS)
def test_it_runs_to_its_end_and_leaves_nothing(real: RealCluster, api: ApiServer, kind: str) -> None:
    run = start(real, kind, poll_s=600, max_poll_s=600)  # so that the watch has to tell
    end_pods(api, make_pods(api, kind))
    complete(api, kind)
    run.result()
    nothing_left(api)
    (reference,) = run.references
    assert (reference["apiVersion"], reference["kind"]) == JOBS[kind]


@pytest.mark.parametrize("kind", KINDS)
def test_a_replica_that_fails_ends_it(real: RealCluster, api: ApiServer, kind: str) -> None:
    run = start(real, kind)
    found = make_pods(api, kind)
    end_pods(api, found[:1], code=3)
    with pytest.raises(ProcessFailed) as caught:
        run.result()
    assert (caught.value.replica, caught.value.cause) == (replica_name(found[0]), "ended with exit status 3")
    nothing_left(api)


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_killed_launcher_leaves_is_adopted(real: RealCluster, api: ApiServer, kind: str) -> None:
    with launcher(real, kind):
        found = make_pods(api, kind)
    before = {one["metadata"]["uid"] for one in listed(api, *JOBS[kind]) or []}
    run = start(real, kind)
    wait_for(lambda: run.references, "the adoption")
    assert {one["metadata"]["uid"] for one in listed(api, *JOBS[kind]) or []} == before
    end_pods(api, found)
    complete(api, kind)
    run.result()
    nothing_left(api)


@pytest.mark.parametrize("kind", KINDS)
def test_another_runs_objects_are_left_alone(real: RealCluster, api: ApiServer, kind: str) -> None:
    theirs = start(real, kind, launch(run_id="theirs"))
    wait_for(lambda: theirs.references, "theirs")
    with pytest.raises(ClusterFailed, match="of run 'theirs'; this is run 'ours'"):
        start(real, kind, launch(run_id="ours")).result()
    end_pods(api, make_pods(api, kind))
    complete(api, kind)
    theirs.result()
    nothing_left(api)


@pytest.mark.parametrize("kind", KINDS)
def test_sigterm_deletes_everything(real: RealCluster, api: ApiServer, kind: str) -> None:
    with launcher(real, kind) as ended:
        make_pods(api, kind)
        ended.send_signal(signal.SIGTERM)
        assert ended.wait(30) == 128 + signal.SIGTERM
    nothing_left(api)


def test_what_is_half_collected_is_waited_for(real: RealCluster, api: ApiServer) -> None:
    with launcher(real, "job") as ended:
        pods(api, 3)
        ended.send_signal(signal.SIGTERM)
        ended.wait(30)
    run = start(real, "job", launch(pod_group("root", 1), pod_group("worker", 2)))
    wait_for(lambda: run.references, "the new objects")
    wait_for(lambda: len(listed(api, *JOBS["job"]) or []) == 2, "the new Jobs alone")
    uid = run.references[0]["owner"]["uid"]
    for job in listed(api, *JOBS["job"]) or []:
        assert [owner["uid"] for owner in job["metadata"]["ownerReferences"]] == [uid]
    new = [job["metadata"]["uid"] for job in listed(api, *JOBS["job"]) or []]

    def new_pods() -> list[dict[str, Any]]:
        found = listed(api, "v1", "Pod") or []
        return [pod for pod in found if pod["metadata"]["ownerReferences"][0]["uid"] in new]

    end_pods(api, wait_for(lambda: len(new_pods()) == 3 and new_pods(), "the new pods"))
    run.result()
    nothing_left(api)


def test_without_the_role_nothing_is_created(real: RealCluster, api: ApiServer) -> None:
    with pytest.raises(ClusterFailed, match="403 Forbidden: services is forbidden"):
        start(real, "job", user=STRANGER).result()
    nothing_left(api)


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/api/v1/namespaces/geo/secrets"),
        ("GET", "/api/v1/namespaces/geo/configmaps"),
        ("POST", "/api/v1/namespaces/geo/pods"),
        ("DELETE", "/api/v1/namespaces/geo/pods/any"),
        ("DELETE", "/apis/batch/v1/namespaces/geo/jobs/any"),
        ("PATCH", "/apis/batch/v1/namespaces/geo/jobs/any"),
        ("DELETE", "/apis/qihoo.net/v1alpha1/namespaces/geo/dgljobs/any"),
        ("GET", "/api/v1/namespaces/default/pods"),
        ("GET", "/apis/apps/v1/namespaces/geo/deployments"),
    ],
)
def test_the_role_allows_nothing_else(real: RealCluster, method: str, path: str) -> None:
    account = real.api(ACCOUNT)
    with pytest.raises(ApiError) as caught:
        account.request(method, path, body={} if method in {"POST", "PATCH"} else None)
    account.close()
    assert caught.value.status == 403


@contextlib.contextmanager
def launcher(real: RealCluster, kind: str) -> Iterator["subprocess.Popen[bytes]"]:
    """Runs a launcher as a process of its own, until the block ends at the latest."""
    program = str(TESTS / "support" / "launch_on_clusters.py")
    with subprocess.Popen(
        [sys.executable, program, kind, real.cluster(ACCOUNT).kubeconfig],
        env={**os.environ, "PYTHONPATH": str(TESTS)},
    ) as process:
        try:
            yield process
        finally:
            process.kill()
