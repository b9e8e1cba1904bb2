"""Plays what controllers and nodes do to the objects of an API server double, as a test says."""

import copy
import time
from collections.abc import Callable
from typing import Any

from geokfp.components._launch.object_paths import owner_uids
from geokfp.components._launch.pod_states import is_replica, replica_name

from .api_server import ApiServerDouble

Document = dict[str, Any]
DEADLINE_S = 30.0
NODE_PORT = 31234
"""What the double chooses where a Service names none."""


class ClusterScript:
    """Makes pods of jobs, and has them run, wait, fail and end."""

    def __init__(self, server: ApiServerDouble, namespace: str = "geo") -> None:
        self.server = server
        self.namespace = namespace
        self.addresses: list[str] = []
        """What Services of type LoadBalancer get as they are made, one after the other."""
        self._clock = 0
        self.at_birth: dict[str, Callable[[], None]] = {}
        """Called by replica as its pod is made: nobody sees it in another state."""
        server.store.on_create = self._on_create

    def add(self, api_version: str, kind: str, plural: str, name: str, **rest: Any) -> Document:
        """Puts an object there that nobody asked for by a request."""
        metadata = {"name": name, "namespace": self.namespace, **rest.pop("metadata", {})}
        document = {"apiVersion": api_version, "kind": kind, "metadata": metadata, **rest}
        return self.server.store.create(self._key(api_version, plural), document)

    def wait_for(self, condition: Callable[[], Any], what: str) -> Any:
        """Returns what a condition gives once that is true."""
        until = time.monotonic() + DEADLINE_S
        with self.server.store.changed:
            while not (found := condition()):
                assert time.monotonic() < until, f"waited {DEADLINE_S:g} s for {what}"
                self.server.store.changed.wait(0.02)
            return found

    def pod(self, replica: str) -> str:
        """Returns the name of a replica's pod, once it is there."""
        return str(self.wait_for(lambda: self._find(replica), f"the pod of {replica}"))

    def has(self, replica: str) -> bool:
        """Whether there is a pod of a replica."""
        return self._find(replica) is not None

    def start(self, *replicas: str) -> None:
        for replica in replicas:
            name = self.pod(replica)
            self.server.store.log(name, "")
            self._set(name, phase="Running", containerStatuses=[{"state": {"running": {}}}])

    def log(self, replica: str, *lines: str) -> None:
        for line in lines:
            self._clock += 1
            self.server.store.log(self.pod(replica), f"2026-01-01T00:00:00.{self._clock:06d}Z", line)

    def succeed(self, *replicas: str) -> None:
        for replica in replicas:
            self._end(replica, "Succeeded", {"exitCode": 0, "reason": "Completed"})

    def fail(self, replica: str, **terminated: Any) -> None:
        self._end(replica, "Failed", {"exitCode": 1, "reason": "Error", **terminated})

    def waiting(self, replica: str, reason: str, message: str = "") -> None:
        state = {"waiting": {"reason": reason, "message": message}}
        self._set(self.pod(replica), phase="Pending", containerStatuses=[{"state": state}])

    def unschedulable(self, replica: str, message: str) -> None:
        condition = {
            "type": "PodScheduled",
            "status": "False",
            "reason": "Unschedulable",
            "message": message,
        }
        self._set(self.pod(replica), phase="Pending", conditions=[condition])

    def event(self, name: str, reason: str, message: str, **rest: Any) -> None:
        self._clock += 1
        self.add(
            "v1",
            "Event",
            "events",
            f"{name}.{self._clock}",
            involvedObject={"name": name},
            type="Warning",
            reason=reason,
            message=message,
            lastTimestamp=f"2026-01-01T00:00:{self._clock:02d}Z",
            **rest,
        )

    def condition(self, plural: str, api_version: str, kind: str, **rest: str) -> None:
        """Sets a condition of all jobs of a kind."""
        self._set_jobs(plural, api_version, {"conditions": [{"type": kind, "status": "True", **rest}]})

    def phase(self, phase: str) -> None:
        """Sets the phase of all DGLJobs."""
        self._set_jobs("dgljobs", "qihoo.net/v1alpha1", {"phase": phase})

    def balance(self, name: str, **ingress: str) -> None:
        """Gives a Service of type LoadBalancer an address, once it is there: `ip=` or `hostname=`."""
        key = self._key("v1", "services")

        def there() -> bool:
            return any(one["metadata"]["name"] == name for one in self.server.store.listed(key, {})["items"])

        self.wait_for(there, f"the Service {name}")
        status = {"loadBalancer": {"ingress": [ingress]}}
        self.server.store.change(key, name, lambda service: service.update(status=status))

    def pods(self) -> list[Document]:
        return list(self.server.store.listed(self._key("v1", "pods"), {})["items"])

    def _set_jobs(self, plural: str, api_version: str, status: Document) -> None:
        key = self._key(api_version, plural)
        for job in self.server.store.listed(key, {})["items"]:
            self.server.store.change(key, job["metadata"]["name"], lambda job: job.update(status=status))

    def _end(self, replica: str, phase: str, terminated: Document) -> None:
        self._clock += 1
        ended = {"finishedAt": f"2026-01-01T00:00:{self._clock:02d}Z", **terminated}
        self._set(self.pod(replica), phase=phase, containerStatuses=[{"state": {"terminated": ended}}])
        self._finish_jobs()

    def _finish_jobs(self) -> None:
        """A Job is complete when its pods have ended well, and has failed when one has not."""
        key = self._key("batch/v1", "jobs")
        for job in self.server.store.listed(key, {})["items"]:
            phases = [
                pod["status"]["phase"] for pod in self.pods() if job["metadata"]["uid"] in owner_uids(pod)
            ]
            condition = None
            if "Failed" in phases:
                condition = {"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded"}
            elif set(phases) == {"Succeeded"}:
                condition = {"type": "Complete", "status": "True"}
            if condition:
                status = {"conditions": [condition]}
                self.server.store.change(
                    key,
                    job["metadata"]["name"],
                    lambda job, status=status: job.update(status=status),  # type: ignore[misc]
                )

    def _on_create(self, key: str, document: Document) -> None:
        spec = document.get("spec") or {}
        if document["kind"] == "Service" and spec.get("type") == "NodePort":
            self.server.store.change(key, document["metadata"]["name"], _choose_port)
        if document["kind"] == "Service" and spec.get("type") == "LoadBalancer" and self.addresses:
            self.balance(document["metadata"]["name"], ip=self.addresses.pop(0))
        if document["kind"] == "Job":
            self._make_pods(document, document["metadata"]["name"], spec["template"], spec["completions"])
        if document["kind"] == "JobSet":
            for replicated in spec["replicatedJobs"]:
                job = replicated["template"]["spec"]
                name = f"{document['metadata']['name']}-{replicated['name']}-0"
                self._make_pods(document, name, job["template"], job["completions"])
        if document["kind"] == "TrainJob":
            (patch,) = spec["runtimePatches"]
            (job,) = patch["trainingRuntimeSpec"]["template"]["spec"]["replicatedJobs"]
            container = {"name": job["name"], **{name: spec["trainer"][name] for name in ("image", "env")}}
            pod = {**job["template"]["spec"]["template"], "spec": {"containers": [container]}}
            name = f"{document['metadata']['name']}-{job['name']}-0"
            self._make_pods(document, name, pod, spec["trainer"]["numNodes"])
        if document["kind"] == "DGLJob":
            roles = spec["dglReplicaSpecs"]
            name = document["metadata"]["name"]
            self._make_pod(document, f"{name}-launcher", roles["Launcher"]["template"], None)
            for index in range(int((roles.get("Worker") or {}).get("replicas", 0))):
                self._make_pod(document, f"{name}-worker-{index}", roles["Worker"]["template"], None)

    def _make_pods(self, job: Document, name: str, template: Document, count: int) -> None:
        for index in range(count):
            self._make_pod(job, f"{name}-{index}-x{index}", template, index)

    def _make_pod(self, job: Document, name: str, template: Document, index: int | None) -> None:
        made = copy.deepcopy(template)
        metadata = made.setdefault("metadata", {})
        if index is not None:
            metadata.setdefault("annotations", {})["batch.kubernetes.io/job-completion-index"] = str(index)
        owner = {
            key: value
            for key, value in (
                ("apiVersion", job["apiVersion"]),
                ("kind", job["kind"]),
                ("name", job["metadata"]["name"]),
                ("uid", job["metadata"]["uid"]),
            )
        }
        pod = self.add(
            "v1",
            "Pod",
            "pods",
            name,
            metadata={**metadata, "ownerReferences": [owner]},
            spec=made["spec"],
            status={"phase": "Pending"},
        )
        if is_replica(pod):
            self.at_birth.get(replica_name(pod), lambda: None)()

    def _find(self, replica: str) -> str | None:
        for pod in self.pods():
            if is_replica(pod) and replica_name(pod) == replica:
                return str(pod["metadata"]["name"])
        return None

    def _set(self, pod: str, **status: Any) -> None:
        self.server.store.change(
            self._key("v1", "pods"), pod, lambda document: document.update(status=status)
        )

    def _key(self, api_version: str, plural: str) -> str:
        root = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
        return f"{root}/namespaces/{self.namespace}/{plural}"


def _choose_port(service: Document) -> None:
    (port,) = service["spec"]["ports"]
    port.setdefault("nodePort", NODE_PORT)
