"""Opens a port of a launch beyond its cluster before any pod is there, and waits for where it is reached.

Other clusters' pods are told that address when they start. The Service is made with the owner object, which
the launch adopts then, as everything of its own run::

    owner, Service ── address ── (the caller tells it) ── jobs, pods

A Service of an earlier try keeps its address, unless that try has failed: then all is made anew.
"""

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from .api_errors import ApiError, tried
from .cluster import Document, Placed, WatchSettings
from .cluster_verdict import outcome
from .creation import DELETION, Creation
from .errors import ClusterFailed
from .failure_report import events_of
from .kubernetes import ApiServer
from .manifests import MANIFESTS
from .manifests.object_names import opened_service_name
from .object_paths import is_job, label, object_path, owner_uids
from .progress import progress
from .termination import Deletion, Termination


@contextmanager
def opened_port(placed: Placed, group: str, settings: WatchSettings) -> Iterator[tuple[str, int]]:
    """Yields host and port that a group's open port is reached at; its launch is to be run in the block.

    What was made goes when the block fails; SIGTERM is as with `run_on_clusters`.

    Args:
        placed: the launch, and where it will run.
        group: name of the group, which has a `service`.
        settings: how patiently; the address must be there within `start_timeout_s`.

    Raises:
        ClusterFailed: the cluster refuses the Service, or gives it no address in time.
        InputError: the credentials of the cluster are not there.
    """
    opening = _Opening(placed, group, settings)
    with Termination([opening.deletion], within_s=settings.termination_s):
        done = False
        try:
            yield opening.address()
            done = True
        finally:
            if not done:
                opening.free()
            opening.close()


class _Opening:
    """One Service on its way."""

    def __init__(self, placed: Placed, group: str, settings: WatchSettings) -> None:
        self._placed = placed
        self._settings = settings
        self._stop = threading.Event()
        objects = MANIFESTS[placed.kind].objects(placed.launch)
        (self._group,) = (each for each in placed.launch.groups if each.name == group)
        name = opened_service_name(placed.launch, self._group)
        (service,) = (
            each for each in objects if each["kind"] == "Service" and each["metadata"]["name"] == name
        )
        self._needed = (objects[0], service)
        self._jobs = [each for each in objects if is_job(each)]
        self._api = ApiServer(placed.cluster, request_s=settings.request_s)
        self._creation = Creation(self._api, placed.cluster, settings, self._stop)
        path = object_path(objects[0])
        self.deletion = Deletion(lambda: self._api.ready_request("DELETE", path, DELETION))

    def address(self) -> tuple[str, int]:
        """Makes the Service, and returns where it is reached once that is known."""
        try:
            return self._address()
        except ApiError as error:
            raise self._failed(f"its Services cannot be read: {error}") from error

    def _address(self) -> tuple[str, int]:
        created = self._creation.create(self._needed, self.deletion)
        if created.adopted and self._has_failed(created.owner):
            progress(f"{self._placed.launch.name}: an earlier try has failed; all is created anew")
            self._creation.free(created.owner)
            created = self._creation.create(self._needed, self.deletion)
        service = created.objects[1]
        host = self._group.service.address if self._group.service else ""
        until = time.monotonic() + self._settings.start_timeout_s
        if _where(service, host) is None:
            progress(f"waits for the address of {label(service)}")
        while (found := _where(service, host)) is None:
            if time.monotonic() > until:
                raise self._no_address(service)
            time.sleep(min(1.0, self._settings.poll_s))
            self.deletion.renew()
            service = self._get(service)
        return found

    def free(self) -> None:
        """Deletes what was made, if it is still there; what cannot be is told."""
        try:
            if self._creation.free(self._needed[0]):
                self.deletion.disarm()
        except ApiError as error:
            progress(f"{self._placed.launch.name} could not be deleted: {error}")

    def close(self) -> None:
        """Closes all connections."""
        self._api.close()
        self.deletion.close()

    def _has_failed(self, owner: Document) -> bool:
        uid = str(owner["metadata"]["uid"])
        for job in self._jobs:
            try:
                there = self._get(job)
            except ApiError as error:
                if error.status != 404:
                    raise
                continue
            if uid in owner_uids(there) and outcome(there)[0] == "failed":
                return True
        return False

    def _get(self, document: Document) -> Document:
        return tried(
            lambda: self._api.request("GET", object_path(document)),
            for_s=self._settings.reach_s,
            stop=self._stop,
        )

    def _no_address(self, service: Document) -> ClusterFailed:
        name = str(service["metadata"]["name"])
        waited = "status.loadBalancer.ingress[0] with an ip or a hostname"
        if service["spec"]["type"] == "NodePort":
            waited = "spec.ports[0].nodePort"
        error = self._failed(
            f"{label(service)} has no address after {self._settings.start_timeout_s:g} s (start_timeout_s), "
            f"waited for {waited}; does the cluster give Services of this type one?"
        )
        error.last_lines = tuple(events_of(self._api, self._placed.launch.namespace, [name]))
        return error

    def _failed(self, cause: str) -> ClusterFailed:
        return ClusterFailed(str(self._placed.cluster), cause, self._placed.cluster.name)


def _where(service: Document, host: str) -> tuple[str, int] | None:
    """Returns where a Service is reached, None while that is not known.

    Args:
        service: as the server has it.
        host: of a node, with the type `NodePort`.
    """
    (port,) = service["spec"]["ports"]
    if service["spec"]["type"] == "NodePort":
        return (host, int(port["nodePort"])) if port.get("nodePort") else None
    status: Mapping[str, Any] = service.get("status") or {}
    for each in (status.get("loadBalancer") or {}).get("ingress") or []:
        if found := each.get("ip") or each.get("hostname"):
            return str(found), int(port["port"])
    return None
