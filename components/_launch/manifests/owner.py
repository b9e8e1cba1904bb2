"""The owner object of a launch: a headless Service, which gives the pods their DNS names.

It is created first and deleted to free everything: all other objects name it as their owner. It names the
step's pod as its own owner, so that it goes with that pod at the latest.
"""

import copy
import ipaddress
from collections.abc import Mapping
from typing import Any

from ..pods import PodGroup, PodLaunch, PodService
from .object_names import GROUP_LABEL, LAUNCH_LABEL, labels, opened_service_name


def owner_service(launch: PodLaunch) -> dict[str, Any]:
    """Returns the headless Service named as the launch, which selects all its pods."""
    service = headless_service(launch, launch.name, {LAUNCH_LABEL: launch.name})
    if pod := launch.step_pod:
        service["metadata"]["ownerReferences"] = [
            {"apiVersion": "v1", "kind": "Pod", "name": pod.name, "uid": pod.uid}
        ]
    return service


def headless_service(launch: PodLaunch, name: str, selector: Mapping[str, str]) -> dict[str, Any]:
    """Returns a Service that only names pods, from their start on: they look for each other to become ready.

    Args:
        launch: what it belongs to.
        name: its name.
        selector: labels of its pods.
    """
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": launch.namespace, "labels": labels(launch)},
        "spec": {
            "clusterIP": "None",
            "publishNotReadyAddresses": True,
            "selector": dict(selector),
        },
    }


def opened_services(launch: PodLaunch) -> list[dict[str, Any]]:
    """Returns a Service for each group with a port that is open beyond the cluster."""
    return [_opened(launch, group, group.service) for group in launch.groups if group.service]


def _opened(launch: PodLaunch, group: PodGroup, service: PodService) -> dict[str, Any]:
    port: dict[str, Any] = {
        "name": "opened",
        "port": service.port or service.target_port,
        "targetPort": service.target_port,
    }
    spec: dict[str, Any] = {
        "type": service.kind,
        "selector": {LAUNCH_LABEL: launch.name, GROUP_LABEL: group.name},
        "ports": [port],
    }
    if service.kind == "NodePort":
        port |= {"nodePort": service.port} if service.port else {}
    elif _is_ipv4(service.address):
        spec["loadBalancerIP"] = service.address
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": opened_service_name(launch, group),
            "namespace": launch.namespace,
            "labels": labels(launch, group),
        },
        "spec": spec,
    }


def _is_ipv4(address: str) -> bool:
    try:
        return bool(ipaddress.IPv4Address(address))
    except ipaddress.AddressValueError:
        return False


def owned(obj: Mapping[str, Any], owner: Mapping[str, Any]) -> dict[str, Any]:
    """Returns an object that goes when its owner does.

    The reference blocks no deletion: setting that needs rights that a step's account lacks on some clusters.

    Args:
        obj: the object, left as it is.
        owner: the owner object as the API server returned it, with its uid.
    """
    copied: dict[str, Any] = copy.deepcopy(dict(obj))
    copied["metadata"]["ownerReferences"] = [
        {
            "apiVersion": owner.get("apiVersion", "v1"),
            "kind": owner.get("kind", "Service"),
            "name": owner["metadata"]["name"],
            "uid": owner["metadata"]["uid"],
        }
    ]
    return copied
