"""The rights that are shipped are those that a launch uses, each of them, and no others."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from geokfp.components._launch.errors import ProcessFailed
from geokfp.components._launch.manifests import MANIFESTS, owned
from geokfp.components._launch.manifests.access import rules
from geokfp.components._launch.object_paths import collection_path
from geokfp.components._launch.pods import PodLaunch, StepPod
from support.api_server import COLLECTION, ApiServerDouble, Request
from support.cluster_script import ClusterScript
from support.launched import NAMESPACE, launch, start

ALL = ("root/0", "worker/0", "worker/1")
CONDITIONS = {
    "jobset": ("jobsets", "jobset.x-k8s.io/v1alpha2", "Completed"),
    "trainjob": ("trainjobs", "trainer.kubeflow.org/v1alpha1", "Complete"),
}

Right = tuple[str, str, str]
every_kind = pytest.mark.parametrize("kind", MANIFESTS)


def shipped(kind: str) -> set[Right]:
    return {
        (verb, group, resource)
        for rule in rules([kind])
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def right(request: Request) -> Right:
    """What a request needs, as an API server sees it."""
    found = COLLECTION.fullmatch(request.path)
    assert found, request.path
    verb = {"POST": "create", "PATCH": "patch", "DELETE": "delete"}.get(request.method)
    if verb is None:
        watched = request.query.get("watch") == "true"
        verb = "watch" if watched else "get" if found["name"] else "list"
    group = (found["group"] or "").partition("/")[0]
    return verb, group, found["plural"] + (f"/{found['part']}" if found["part"] else "")


@contextmanager
def cluster(kind: str, used: set[Right]) -> Iterator[tuple[ApiServerDouble, ClusterScript]]:
    """A cluster where the account has the rights of the kind; what it used is added to `used` at the end."""
    with ApiServerDouble() as server:
        server.rules = rules([kind])
        yield server, ClusterScript(server, NAMESPACE)
        used |= {right(request) for request in server.requests}
        assert {request.status for request in server.requests} <= {200, 404, 409}


def leave(server: ApiServerDouble, kind: str, launched: PodLaunch) -> None:
    """Leaves the objects of an earlier try of the same step."""
    first, *others = MANIFESTS[kind].objects(launched)
    owner = server.store.create(collection_path(first), first)
    for other in others:
        server.store.create(collection_path(other), owned(other, owner))


@every_kind
def test_the_rights_that_are_shipped_are_those_that_are_used(kind: str, tmp_path: Path) -> None:
    used: set[Right] = set()
    with cluster(kind, used) as (server, script):
        run = start(server, tmp_path / "new", kind)
        script.start(*ALL)
        script.log("worker/1", "epoch 1")
        script.wait_for(lambda: run.texts("worker/1"), "the log")
        script.succeed(*ALL)
        if kind in CONDITIONS:
            script.condition(*CONDITIONS[kind])
        run.result()
    with cluster(kind, used) as (server, script):
        pods = [
            script.add("v1", "Pod", "pods", name, spec={"containers": []}) for name in ("step-1", "step-2")
        ]
        tries = [StepPod(name=pod["metadata"]["name"], uid=pod["metadata"]["uid"]) for pod in pods]
        leave(server, kind, launch(step_pod=tries[0]))
        run = start(server, tmp_path / "again", kind, launch(step_pod=tries[1]))
        script.wait_for(lambda: run.references, "its adoption")
        script.start(*ALL)
        script.fail("worker/1", exitCode=3)
        with pytest.raises(ProcessFailed):
            run.result()
    assert used == shipped(kind)
