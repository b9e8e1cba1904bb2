"""`trainjob`: one TrainJob a group (Kubeflow Trainer 2.2 or newer), of the runtime that we ship.

A TrainJob has one role, with one image and one size of nodes: groups differ in both. What is the same for all
pods, such as that they run once and without rights, is said by the runtime, as is how long a finished one
stays readable; `geokfp manifests` writes it.
"""

import copy
from typing import Any

from ..pods import PodGroup, PodLaunch
from .object_names import checked_hosts, group_name, labels
from .owner import opened_services, owner_service
from .pod_template import (
    COMMAND,
    SECURITY,
    SIDE_CAR,
    environment,
    pod_metadata,
    said,
    scheduling,
    volume_mounts,
    volumes,
)

API_VERSION = "trainer.kubeflow.org/v1alpha1"
NODE = "node"
"""The runtime's replicated job, and its container: Trainer fills these names in."""

_MANAGER = "geokfp/launcher"


def hosts(launch: PodLaunch) -> dict[str, tuple[str, ...]]:
    """Returns the DNS names of each group's pods, in order."""
    named: dict[str, tuple[str, ...]] = {}
    for group in launch.groups:
        name = group_name(launch, group)  # also of the Service that each TrainJob's JobSet makes for itself
        named[group.name] = tuple(f"{name}-{NODE}-0-{index}.{name}" for index in range(group.num_pods))
    return checked_hosts(named)


def objects(launch: PodLaunch) -> list[dict[str, Any]]:
    """Returns the objects in the order of their creation; the first owns the others."""
    jobs = [_train_job(launch, group) for group in launch.groups]
    return [owner_service(launch), *opened_services(launch), *jobs]


def training_runtime(name: str, *, image: str, ttl_s: int) -> dict[str, Any]:
    """Returns the ClusterTrainingRuntime that TrainJobs refer to.

    Args:
        name: its name, the field `runtime` of a launch.
        image: image of a TrainJob that names none.
        ttl_s: seconds for which the pods of a finished TrainJob stay readable.
    """
    pod = {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "containers": [
            {
                "name": NODE,
                "image": image,
                "command": list(COMMAND),
                "terminationMessagePolicy": "FallbackToLogsOnError",
                "securityContext": copy.deepcopy(SECURITY),
            }
        ],
    }
    metadata = {"labels": {SIDE_CAR: "false"}, "annotations": {SIDE_CAR: "false"}}
    job = {
        "metadata": {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}},
        "spec": {"backoffLimit": 0, "template": {"metadata": metadata, "spec": pod}},
    }
    job_set = {
        "network": {"enableDNSHostnames": True, "publishNotReadyAddresses": True},
        "successPolicy": {"operator": "All"},
        "failurePolicy": {"maxRestarts": 0},
        "ttlSecondsAfterFinished": ttl_s,
        "replicatedJobs": [{"name": NODE, "replicas": 1, "template": job}],
    }
    return {
        "apiVersion": API_VERSION,
        "kind": "ClusterTrainingRuntime",
        "metadata": {"name": name, "labels": {"app.kubernetes.io/name": "geokfp"}},
        "spec": {"mlPolicy": {"numNodes": 1}, "template": {"spec": job_set}},
    }


def _train_job(launch: PodLaunch, group: PodGroup) -> dict[str, Any]:
    trainer = {
        "image": group.image,
        "command": list(COMMAND),
        "env": environment(launch, group, hosts(launch)),
        "numNodes": group.num_pods,
        "resourcesPerNode": dict(group.settings.resources),
    }
    return {
        "apiVersion": API_VERSION,
        "kind": "TrainJob",
        "metadata": {
            "name": group_name(launch, group),
            "namespace": launch.namespace,
            "labels": labels(launch, group),
        },
        "spec": {
            "runtimeRef": {
                "apiGroup": API_VERSION.partition("/")[0],
                "kind": "ClusterTrainingRuntime",
                "name": launch.runtime,
            },
            "activeDeadlineSeconds": launch.deadline_s,
            "trainer": said(trainer),
            "runtimePatches": [_patch(launch, group)],
        },
    }


def _patch(launch: PodLaunch, group: PodGroup) -> dict[str, Any]:
    """What a TrainJob's own fields do not say about its pods."""
    spec = {**scheduling(group.settings), "volumes": volumes(group)}
    if mounts := volume_mounts(group):
        spec["containers"] = [{"name": NODE, "volumeMounts": mounts}]
    template = {"metadata": pod_metadata(launch, group), "spec": said(spec)}
    job = {"name": NODE, "template": {"spec": {"template": said(template)}}}
    return {
        "manager": _MANAGER,
        "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": [job]}}},
    }
