"""One cluster's part of a run, in a thread of its own: create, watch, judge, and free in every case."""

import random
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .api_errors import ApiError, Stopped, tried
from .cluster import Document, Placed, WatchSettings
from .cluster_verdict import Judge, Verdict, outcome
from .creation import DELETION, Created, Creation
from .errors import ClusterFailed, ProcessFailed
from .failure_report import events_of
from .kubernetes import ApiServer
from .manifests import LAUNCH_LABEL, MANIFESTS
from .object_paths import collection_path, is_job, kind_path, label, object_path
from .object_watch import watch
from .pod_logs import LogFollower
from .pod_states import container, has_started, is_replica, phase, replica_name, table
from .termination import Deletion

GROWTH = 1.5
"""Of the time between two looks, while nothing changes."""
SOON_S = 1.0
"""Between two looks when something is about to be decided, and at least after a change."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Ears:
    """Who is told what; all are called in the cluster's threads."""

    line: Callable[[str, str], None]
    """A replica's name and a line of its log."""
    created: Callable[[dict[str, Any]], None]
    """The reference of what was created, before it is waited for."""


class ClusterRun:
    """One launch at one cluster."""

    def __init__(self, placed: Placed, settings: WatchSettings, ears: Ears, *, prefixed: bool) -> None:
        """Reads credentials and makes the objects; sends nothing.

        Args:
            placed: what to run, and where.
            settings: how patiently.
            ears: who is told.
            prefixed: whether replicas are named with their cluster.

        Raises:
            InputError: there are no such credentials.
        """
        self._placed = placed
        self._launch = placed.launch
        self._stop = threading.Event()
        self._quiet = threading.Event()
        self._wake = threading.Event()
        self._settings = settings
        self._ears = ears
        self._prefix = f"{placed.cluster.name or placed.launch.name}/" if prefixed else ""
        self._objects = MANIFESTS[placed.kind].objects(placed.launch)
        self._selector = f"{LAUNCH_LABEL}={placed.launch.name}"
        self._pods_path = kind_path("v1", "Pod", placed.launch.namespace)
        self._api = ApiServer(placed.cluster, request_s=settings.request_s)
        self._creation = Creation(self._api, placed.cluster, settings, self._stop)
        self._followers: dict[str, LogFollower] = {}
        owner_path = object_path(self._objects[0])
        self.deletion = Deletion(lambda: self._api.ready_request("DELETE", owner_path, DELETION))
        """What SIGTERM sends."""

    def run(self) -> None:
        """Runs the launch to its end; what it created is deleted when this returns or raises.

        Raises:
            ProcessFailed: a replica failed, or the cluster did.
            Stopped: told to, as another cluster's part has ended.
        """
        try:
            self._run()
        except ApiError as error:
            raise self._unusable(f"its status cannot be read: {error}") from error
        finally:
            self._quiet.set()
            self._api.close()
            self.deletion.close()

    def end(self) -> None:
        """Ends it from another thread."""
        self._stop.set()
        self._wake.set()

    def _run(self) -> None:
        try:
            created = self._create()
            self._ears.created(job_reference(self._placed, created))
            self._start_watches(created)
            self._wait(created)
        finally:
            self._free()

    def _create(self) -> Created:
        """Creates all, anew where an earlier try has left what failed while nobody watched."""
        created = self._creation.create(self._objects, self.deletion)
        if created.adopted and any(outcome(found)[0] == "failed" for found in self._jobs(created)):
            self._say(f"{self._launch.name}: an earlier try has failed; all is created anew")
            self._free()
            created = self._creation.create(self._objects, self.deletion)
        names = ", ".join(f"{job['kind']} {job['metadata']['name']}" for job in self._jobs(created))
        self._say(f"{'adopted' if created.adopted else 'created'} {names} in {self._launch.namespace}")
        return created

    def _wait(self, created: Created) -> None:
        judge = Judge(self._launch, self._placed.kind, self._settings, time.monotonic())
        delay_s, before = self._settings.poll_s, ""
        while True:
            self._wake.clear()
            objects, pods = self._look(created)
            self._follow_logs(pods)
            verdict = judge.verdict(objects, pods, time.monotonic())
            if verdict.state == "succeeded":
                return self._drain(self._followers.values())
            if verdict.state == "failed":
                raise self._failure(verdict, created, pods)
            now = " ".join(f"{replica_name(pod)}={phase(pod)}" for pod in pods)
            if now != before:
                delay_s, before = self._settings.poll_s, now
                self._say(_summary(pods))
            self._pause(min(delay_s, SOON_S) if verdict.look_again else delay_s)
            delay_s = min(delay_s * GROWTH, self._settings.max_poll_s)

    def _look(self, created: Created) -> tuple[dict[str, Document | None], list[Document]]:
        """Looks the objects up, then the pods: a pod's state is never older than its object's."""
        found = {label(document): self._found(document) for document in (created.owner, *self._jobs(created))}
        return found, self._pods(self._settings.retry_s)

    def _found(self, document: Document) -> Document | None:
        try:
            there = self._ask(object_path(document), {}, self._settings.retry_s)
        except ApiError as error:
            if error.status == 404:
                return None
            raise
        return there if there["metadata"]["uid"] == document["metadata"]["uid"] else None

    def _pods(self, for_s: float) -> list[Document]:
        pods = self._ask(self._pods_path, {"labelSelector": self._selector}, for_s)["items"]
        return [pod for pod in pods if is_replica(pod)]

    def _ask(self, path: str, query: Mapping[str, str], for_s: float) -> dict[str, Any]:
        return tried(lambda: self._api.request("GET", path, query=query), for_s=for_s, stop=self._stop)

    def _pause(self, delay_s: float) -> None:
        """Waits for a change, or until `delay_s` have passed, spread over a fifth of it."""
        least_s = min(SOON_S, self._settings.poll_s, delay_s)
        if self._stop.wait(least_s):
            raise Stopped
        until = time.monotonic() + delay_s * (0.9 + random.random() / 5) - least_s
        self.deletion.renew()
        while (left_s := until - time.monotonic()) > 0 and not self._wake.wait(min(left_s, 10.0)):
            self.deletion.renew()
        if self._stop.is_set():
            raise Stopped

    def _start_watches(self, created: Created) -> None:
        paths = {collection_path(job) for job in self._jobs(created)} | {self._pods_path}
        for path in sorted(paths):
            arguments = (self._api, path, self._selector, self._wake.set, self._quiet)
            threading.Thread(target=watch, args=arguments, name=f"watch {path}", daemon=True).start()

    def _follow_logs(self, pods: Sequence[Document]) -> None:
        for pod in pods:
            name, uid = replica_name(pod), pod["metadata"]["uid"]
            if has_started(pod) and uid not in self._followers:
                self._followers[uid] = LogFollower(
                    self._api,
                    f"{object_path({'apiVersion': 'v1', 'kind': 'Pod', **pod})}/log",
                    container(pod),
                    lambda text, name=name: self._ears.line(self._prefix + name, text),  # type: ignore[misc]
                    self._quiet,
                )
            if phase(pod) in {"Succeeded", "Failed"}:
                self._followers[uid].end()

    def _drain(self, followers: Any) -> None:
        """Gives the logs time to come in whole."""
        until = time.monotonic() + self._settings.drain_s
        for follower in followers:
            follower.end()
            follower.join(max(0.0, until - time.monotonic()))

    def _failure(self, verdict: Verdict, created: Created, pods: Sequence[Document]) -> ProcessFailed:
        """Collects what explains the failure, before all is deleted."""
        for line in table(pods):
            self._say(line)
        lines: tuple[str, ...] = ()
        for pod in pods:
            follower = self._followers.get(pod["metadata"]["uid"])
            if pod["metadata"]["name"] == verdict.pod and follower:
                self._drain([follower])
                lines = follower.last_lines()
        about = (
            [verdict.pod] if verdict.pod else [str(job["metadata"]["name"]) for job in self._jobs(created)]
        )
        events = events_of(self._api, self._launch.namespace, about)
        return ProcessFailed(self._prefix + verdict.replica, verdict.cause, (*lines, *events))

    def _free(self) -> None:
        """Deletes the owner if it is this run's, and waits for the pods to go; says what it could not."""
        try:
            if self._creation.free(self._objects[0]):
                self.deletion.disarm()
                self._await_gone()
        except ApiError as error:
            self._say(f"{self._launch.name} could not be deleted, or not be seen to go: {error}")

    def _await_gone(self) -> None:
        until = time.monotonic() + self._settings.gone_s
        query = {"labelSelector": self._selector}

        def pods() -> list[Document]:
            return list(self._api.request("GET", self._pods_path, query=query)["items"])

        while found := tried(pods, for_s=until - time.monotonic(), stop=threading.Event()):
            if time.monotonic() > until:
                names = ", ".join(pod["metadata"]["name"] for pod in found)
                return self._say(f"still there {self._settings.gone_s:g} s after their deletion: {names}")
            time.sleep(min(SOON_S, self._settings.poll_s))
        return None

    def _jobs(self, created: Created) -> list[Document]:
        return [found for found in created.objects if is_job(found)]

    def _say(self, text: str) -> None:
        self._ears.line(self._prefix.rstrip("/") or self._launch.name, text)

    def _unusable(self, cause: str) -> ClusterFailed:
        return ClusterFailed(str(self._placed.cluster), cause, self._placed.cluster.name)


def job_reference(placed: Placed, created: Created) -> dict[str, Any]:
    """Returns where a launch can be found: its first job, the names of all its pods' hosts, and the owner."""
    job = next(found for found in created.objects if is_job(found))
    hosts = MANIFESTS[placed.kind].hosts(placed.launch)
    return {
        "apiVersion": job["apiVersion"],
        "kind": job["kind"],
        "namespace": job["metadata"]["namespace"],
        "name": job["metadata"]["name"],
        "uid": job["metadata"]["uid"],
        "pods": [host for group in hosts.values() for host in group],
        "owner": {key: created.owner["metadata"][key] for key in ("name", "uid")},
        "cluster": placed.cluster.name,
    }


def _summary(pods: Sequence[Document]) -> str:
    counts: dict[str, int] = {}
    for pod in pods:
        counts[phase(pod)] = counts.get(phase(pod), 0) + 1
    return "pods: " + (", ".join(f"{count} {name}" for name, count in sorted(counts.items())) or "none yet")
