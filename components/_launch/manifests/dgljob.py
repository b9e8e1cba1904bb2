"""`dgljob`: one DGLJob (qihoo.net/v1alpha1) a group: pod 0 is its launcher, the others are its workers.

The operator knows no deadline, so that it is in the pods, and never removes what has finished: the owner's
deletion does. It starts workers when a partitioner of its own has ended, which runs the launcher's command
and has nothing to do here. It mounts /dev/shm into workers itself, half as large as their memory limit, and
gives launchers an account of its own.
"""

import dataclasses
from typing import Any

from ..._files import InputError
from ..pods import PodGroup, PodLaunch
from .object_names import checked_hosts, group_name, labels
from .owner import headless_service, opened_services, owner_service
from .pod_template import SHARED_MEMORY, memory_limit, mounts_shared_memory, pod_template

_POD_NAME = "metadata.name"
_POD_LABEL = "dgl-replica-name"
_GB = 10**9


def hosts(launch: PodLaunch) -> dict[str, tuple[str, ...]]:
    """Returns the names of each group's pods, in order; each is also the name of a Service of its own."""
    named: dict[str, tuple[str, ...]] = {}
    for group in launch.groups:
        name = group_name(launch, group)
        workers = (f"{name}-worker-{index}" for index in range(group.num_pods - 1))
        named[group.name] = (f"{name}-launcher", *workers)
    return checked_hosts(named)


def objects(launch: PodLaunch) -> list[dict[str, Any]]:
    """Returns the objects in the order of their creation; the first owns the others.

    Raises:
        InputError: the operator cannot start a group as it is.
    """
    pods = [name for names in hosts(launch).values() for name in names]
    return [
        owner_service(launch),
        *opened_services(launch),
        *(headless_service(launch, name, {_POD_LABEL: name}) for name in pods),
        *(_dgl_job(launch, group) for group in launch.groups),
    ]


def _dgl_job(launch: PodLaunch, group: PodGroup) -> dict[str, Any]:
    several = group.num_pods > 1
    replicas = {"Launcher": {"replicas": 1, "template": _launcher(launch, group)}}
    if several:
        _check(group)
        worker = {"replicas": group.num_pods - 1, "template": _worker(launch, group)}
        replicas["Worker"] = worker
    return {
        "apiVersion": "qihoo.net/v1alpha1",
        "kind": "DGLJob",
        "metadata": {
            "name": group_name(launch, group),
            "namespace": launch.namespace,
            "labels": labels(launch, group),
        },
        "spec": {
            "partitionMode": "DGL-API" if several else "Skip",
            "cleanPodPolicy": "None",
            "slotsPerWorker": 1,
            "dglReplicaSpecs": replicas,
        },
    }


def _launcher(launch: PodLaunch, group: PodGroup) -> dict[str, Any]:
    template = _template(launch, group)
    if group.num_pods > 1:  # the operator's own containers in this pod ask the API server for the others
        del template["spec"]["automountServiceAccountToken"]
    return template


def _worker(launch: PodLaunch, group: PodGroup) -> dict[str, Any]:
    return _template(launch, dataclasses.replace(group, shared_memory_bytes=0))


def _template(launch: PodLaunch, group: PodGroup) -> dict[str, Any]:
    template = pod_template(launch, group, hosts(launch), index_field=_POD_NAME)
    template["spec"]["activeDeadlineSeconds"] = launch.deadline_s
    return template


def _check(group: PodGroup) -> None:
    """Refuses what the operator would overwrite in a job with workers, or do otherwise."""
    whose = f"pod group {group.name!r} as a DGLJob"
    if group.settings.service_account:
        raise InputError(
            f"{whose}: service_account is {group.settings.service_account!r}, allowed: none, "
            f"as the operator sets its own"
        )
    if mounts_shared_memory(group):
        raise InputError(
            f"{whose}: a volume is mounted at {SHARED_MEMORY}, where the operator mounts its own"
        )
    limit = memory_limit(group)
    granted = None if limit is None else limit // _GB // 2 * _GB
    needed = 2 * -(-group.shared_memory_bytes // _GB)
    if granted and granted < group.shared_memory_bytes:
        raise InputError(
            f"{whose}: the memory limit of {limit} bytes gives {granted} bytes of {SHARED_MEMORY}, "
            f"and {group.shared_memory_bytes} are needed; allowed: {needed}G or more"
        )
