"""The pod of a group, the same for all kinds but for where each kind lets it be said.

A pod is told by its environment what it is::

    GEOKFP_LAUNCH     name of the launch
    GEOKFP_GROUP      its group
    GEOKFP_INDEX      its number in the group, or its host's name in GEOKFP_HOSTS
    GEOKFP_HOSTS      {"group": ["DNS name of pod 0", ...], ...}
    GEOKFP_TARGET     module:function to call
    GEOKFP_DOCUMENT   text for it
"""

import copy
import json
from collections.abc import Mapping
from typing import Any

from ..._files import InputError
from ..pods import MAX_DOCUMENT_BYTES, PodGroup, PodLaunch, PodSettings
from .object_names import labels
from .quantity import bytes_of

COMMAND = ("python3", "-m", "geokfp.components._launch.pod")
"""What every pod runs."""
COMPLETION_INDEX = "metadata.annotations['batch.kubernetes.io/job-completion-index']"
"""Where an Indexed Job says a pod's number."""
SHARED_MEMORY = "/dev/shm"
"""Where a pod's processes share memory."""
SIDE_CAR = "sidecar.istio.io/inject"
"""Annotation and label: a service mesh's proxy would never end, nor let raw TCP pass."""
SECURITY: dict[str, Any] = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "runAsNonRoot": True,
    "seccompProfile": {"type": "RuntimeDefault"},
}
"""Of the container, not of the pod: what an operator adds beside it may need more."""

_SHM_VOLUME = "geokfp-shm"


def pod_template(
    launch: PodLaunch,
    group: PodGroup,
    hosts: Mapping[str, tuple[str, ...]],
    *,
    index_field: str = COMPLETION_INDEX,
    subdomain: str = "",
) -> dict[str, Any]:
    """Returns the template of a group's pods.

    Args:
        launch: what it belongs to.
        group: the pods.
        hosts: DNS names of the pods of all groups.
        index_field: the pod's own field that tells its number or host name.
        subdomain: name of the headless Service that gives pods their names; empty where the kind sets it.

    Raises:
        InputError: settings that contradict each other, or the launch.
    """
    spec: dict[str, Any] = {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "subdomain": subdomain,
        **scheduling(group.settings),
        "containers": [_container(launch, group, hosts, index_field)],
        "volumes": volumes(group),
    }
    return {"metadata": pod_metadata(launch, group), "spec": said(spec)}


def scheduling(settings: PodSettings) -> dict[str, Any]:
    """Returns which account pods run under, and on which nodes."""
    return {
        "serviceAccountName": settings.service_account,
        "imagePullSecrets": [{"name": name} for name in settings.image_pull_secrets],
        "nodeSelector": dict(settings.node_selector),
        "affinity": copy.deepcopy(dict(settings.affinity)),
        "tolerations": [dict(toleration) for toleration in settings.tolerations],
    }


def said(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Returns fields without those that say nothing: empty and absent are not always the same."""
    return {name: value for name, value in fields.items() if value not in ("", {}, [])}


def pod_metadata(launch: PodLaunch, group: PodGroup) -> dict[str, Any]:
    """Returns labels and annotations of a group's pods."""
    return {
        "labels": {**labels(launch, group), SIDE_CAR: "false"},
        "annotations": {SIDE_CAR: "false"},
    }


def environment(
    launch: PodLaunch,
    group: PodGroup,
    hosts: Mapping[str, tuple[str, ...]],
    index_field: str = COMPLETION_INDEX,
) -> list[dict[str, Any]]:
    """Returns a container's variables: the group's own, then what tells the pod its place.

    Raises:
        InputError: a setting would overwrite one of the launcher's, or the names are too long.
    """
    told = json.dumps({name: list(addresses) for name, addresses in hosts.items()})
    if len(told) > MAX_DOCUMENT_BYTES:
        raise InputError(
            f"launch {launch.name!r}: the names of all pods take {len(told)} bytes, "
            f"allowed: {MAX_DOCUMENT_BYTES}; fewer pods are needed"
        )
    own: list[dict[str, Any]] = [
        {"name": "GEOKFP_LAUNCH", "value": launch.name},
        {"name": "GEOKFP_GROUP", "value": group.name},
        {"name": "GEOKFP_INDEX", "valueFrom": {"fieldRef": {"fieldPath": index_field}}},
        {"name": "GEOKFP_HOSTS", "value": told},
        {"name": "GEOKFP_TARGET", "value": group.target},
        {"name": "GEOKFP_DOCUMENT", "value": escaped(group.document)},
    ]
    reserved = {variable["name"] for variable in own}
    given = [dict(variable) for variable in group.settings.env]
    if taken := sorted(reserved & {str(variable.get("name")) for variable in given}):
        raise InputError(f"pod group {group.name!r}: env sets {taken[0]}, which the launcher itself sets")
    return given + own


def escaped(text: str) -> str:
    """Returns a variable's value that reaches the process as this text: the kubelet expands `$(NAME)`."""
    return text.replace("$", "$$")


def unescaped(value: str) -> str:
    """Returns what `escaped` was given, for who starts a pod's process without a kubelet."""
    return value.replace("$$", "$")


def volumes(group: PodGroup) -> list[dict[str, Any]]:
    """Returns a group's volumes, with that of /dev/shm."""
    given = [dict(volume) for volume in group.settings.volumes]
    if not adds_shared_memory(group):
        return given
    memory = {"medium": "Memory", "sizeLimit": str(group.shared_memory_bytes)}
    return [*given, {"name": _SHM_VOLUME, "emptyDir": memory}]


def volume_mounts(group: PodGroup) -> list[dict[str, Any]]:
    """Returns where a group's container sees its volumes."""
    given = [dict(mount) for mount in group.settings.volume_mounts]
    return [*given, {"name": _SHM_VOLUME, "mountPath": SHARED_MEMORY}] if adds_shared_memory(group) else given


def mounts_shared_memory(group: PodGroup) -> bool:
    """Returns whether a group's own settings mount /dev/shm."""
    return any(
        mount.get("mountPath", "").rstrip("/") == SHARED_MEMORY for mount in group.settings.volume_mounts
    )


def adds_shared_memory(group: PodGroup) -> bool:
    """Returns whether the launcher mounts /dev/shm; settings that mount it themselves are kept.

    Raises:
        InputError: the memory limit is less, so that whoever fills it would be killed.
    """
    if not group.shared_memory_bytes or mounts_shared_memory(group):
        return False
    if (limit := memory_limit(group)) is not None and limit < group.shared_memory_bytes:
        raise InputError(
            f"pod group {group.name!r}: the memory limit is {limit} bytes, and /dev/shm alone "
            f"takes {group.shared_memory_bytes}; a higher limit is needed"
        )
    return True


def memory_limit(group: PodGroup) -> int | None:
    """Returns the container's memory limit in bytes; None is no limit."""
    limit = (group.settings.resources.get("limits") or {}).get("memory")
    return None if limit is None else bytes_of(limit, f"pod group {group.name!r}: memory limit")


def _container(
    launch: PodLaunch, group: PodGroup, hosts: Mapping[str, tuple[str, ...]], index_field: str
) -> dict[str, Any]:
    container = {
        "name": "geokfp",
        "image": group.image,
        "command": list(COMMAND),
        "env": environment(launch, group, hosts, index_field),
        "ports": [{"name": name, "containerPort": port} for name, port in group.ports.items()],
        "resources": dict(group.settings.resources),
        "volumeMounts": volume_mounts(group),
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "securityContext": copy.deepcopy(SECURITY),
    }
    return said(container)
