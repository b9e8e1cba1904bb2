"""What runs in a launch's pods, for processes to stand in: commands and environment, from its objects."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from .._files import InputError
from .environment import ADDRESSES, GROUP, INDEX
from .manifests import MANIFESTS, unescaped
from .pods import PodLaunch

_OWN_NAME = "metadata.name"
"""The field by which a pod that is told no number is told its host's name."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PodCommand:
    """What runs in one pod."""

    name: str
    """Group and number, `worker/1`."""
    host: str
    """Its DNS name."""
    command: tuple[str, ...]
    """Program and arguments."""
    environment: Mapping[str, str]
    """Variables that its container sets."""
    shared_memory_bytes: int
    """Size of its /dev/shm; 0 is a node's default."""

    def at(self, addresses: Mapping[str, str]) -> "PodCommand":
        """Returns the same, told the pods' addresses by host, in the place of DNS."""
        return replace(self, environment={**self.environment, ADDRESSES: json.dumps(dict(addresses))})


def pod_commands(launch: PodLaunch, kind: str, inherited: Mapping[str, str]) -> list[PodCommand]:
    """Returns what the pods of a launch run, in the order of groups and numbers.

    Args:
        launch: what to start.
        kind: the kind of objects that it becomes.
        inherited: variables of this process, which stand for secrets and other objects of a cluster.

    Raises:
        InputError: a variable comes from an object of the cluster, and this process has none of its name.
    """
    manifest = MANIFESTS[kind]
    hosts = manifest.hosts(launch)
    containers = list(_containers(manifest.objects(launch)))
    found = []
    for group in launch.groups:
        container = next(each for each in containers if _says(each, GROUP) == group.name)
        for index, host in enumerate(hosts[group.name]):
            pod = {INDEX: _index(container, index, host)}
            environment = _environment(container, inherited, pod)
            found.append(
                PodCommand(
                    name=f"{group.name}/{index}",
                    host=host,
                    command=tuple(container["command"]),
                    environment=environment,
                    shared_memory_bytes=group.shared_memory_bytes,
                )
            )
    return found


def _containers(value: Any) -> Iterator[dict[str, Any]]:
    """Yields every container of this library's pods anywhere in the objects."""
    if isinstance(value, dict):
        if "command" in value and any(entry.get("name") == GROUP for entry in value.get("env", ())):
            yield value
        for each in value.values():
            yield from _containers(each)
    elif isinstance(value, list):
        for each in value:
            yield from _containers(each)


def _says(container: Mapping[str, Any], name: str) -> str:
    return next((str(entry.get("value", "")) for entry in container["env"] if entry["name"] == name), "")


def _index(container: Mapping[str, Any], index: int, host: str) -> str:
    (entry,) = (entry for entry in container["env"] if entry["name"] == INDEX)
    field = entry["valueFrom"]["fieldRef"]["fieldPath"]
    return host if field == _OWN_NAME else str(index)


def _environment(
    container: Mapping[str, Any], inherited: Mapping[str, str], pod: Mapping[str, str]
) -> dict[str, str]:
    found = {}
    for entry in container["env"]:
        name = entry["name"]
        if name in pod:
            found[name] = pod[name]
        elif "valueFrom" not in entry:
            found[name] = unescaped(entry.get("value", ""))
        elif name in inherited:
            found[name] = inherited[name]
        else:
            raise InputError(
                f"env {name!r}: comes from the cluster ({', '.join(entry['valueFrom'])}); set it in this "
                "environment to start pods as processes"
            )
    return found
