"""What to start on a cluster: frozen values, with no client and no Kubernetes objects.

A launch is what one step starts on one cluster: groups of numbered pods that start and end together. Each
pod runs `python -m geokfp.components._launch.pod`, which learns its group, its number and the others' names
from its environment and runs that pod's processes under the one supervisor. `manifests/` turns a launch
into objects, one module a kind; `kubernetes.py` creates, watches and deletes them.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .._files import InputError

KINDS = ("job", "jobset", "trainjob", "dgljob")
"""Kinds of objects that pods can be started by."""
LAUNCHERS = ("local", *KINDS)
"""Values of the parameter `launcher`; `local` starts processes beside the step's own."""
SERVICES = ("LoadBalancer", "NodePort")
"""Types of Services that open a port beyond the cluster."""
NODE_PORTS = (30000, 32767)
"""First and last port that a cluster opens at its nodes, unless it is told otherwise."""
MAX_DOCUMENT_BYTES = 96 * 1024
"""Of what a pod is handed by its environment: the kernel takes 128 KiB in one string."""

_LABEL = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_NAMESPACE = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_ACCOUNT = re.compile(r"(?!.{254})[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


def check_namespace(namespace: str) -> None:
    """Raises `InputError` where no namespace can have that name."""
    if not _NAMESPACE.fullmatch(namespace):
        raise InputError(
            f"namespace {namespace!r}: must be small letters, digits and inner hyphens, 63 characters at most"
        )


def check_account(name: str) -> None:
    """Raises `InputError` where no account can have that name."""
    if not _ACCOUNT.fullmatch(name):
        raise InputError(
            f"service_account {name!r}: must be small letters, digits and inner hyphens and points, "
            "253 characters at most"
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class PodSettings:
    """Settings of a pod as Kubernetes writes them in JSON; what `dsl.TaskConfig` hands on, and more."""

    resources: Mapping[str, Any] = field(default_factory=dict)
    """`{"limits": {...}, "requests": {...}}` of the container."""
    env: tuple[Mapping[str, Any], ...] = ()
    """Variables of the container, also from secrets."""
    volumes: tuple[Mapping[str, Any], ...] = ()
    """Volumes of the pod."""
    volume_mounts: tuple[Mapping[str, Any], ...] = ()
    """Where the container sees them."""
    tolerations: tuple[Mapping[str, Any], ...] = ()
    """Taints that the pod bears."""
    node_selector: Mapping[str, str] = field(default_factory=dict)
    """Labels that the node must have."""
    affinity: Mapping[str, Any] = field(default_factory=dict)
    """Rules about the node and about other pods."""
    service_account: str = ""
    """Account that the pod runs under; empty is the namespace's default."""
    image_pull_secrets: tuple[str, ...] = ()
    """Names of secrets with the registry's credentials."""
    image: str = ""
    """The container's image; empty is the one that the stage names."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PodService:
    """A port of a group's pods that is open beyond the cluster."""

    kind: str
    """`LoadBalancer` or `NodePort`."""
    port: int
    """Port that it is reached at; of every node with `NodePort`, 0 for one that the cluster chooses."""
    target_port: int
    """Port that the pod listens at."""
    address: str = ""
    """IPv4 address or name that it is reached at; empty for one that the cluster gives a `LoadBalancer`."""

    def __post_init__(self) -> None:
        if self.kind not in SERVICES:
            raise InputError(f"service {self.kind!r}: must be one of {', '.join(SERVICES)}")
        if self.kind == "NodePort" and not self.port:
            return
        least, most = NODE_PORTS if self.kind == "NodePort" else (1, 65535)
        if not least <= self.port <= most:
            raise InputError(f"port {self.port} of a {self.kind}: must be {least} to {most}")

    @property
    def is_known(self) -> bool:
        """Whether it is known beforehand where it is reached."""
        return bool(self.address and self.port)


@dataclass(frozen=True, kw_only=True, slots=True)
class PodGroup:
    """Pods that run the same, numbered from 0."""

    name: str
    """A DNS label, such as `worker` or `root`; unique in its launch."""
    num_pods: int
    """How many."""
    image: str
    """The container's image."""
    target: str
    """`package.module:function`, called in each pod with its `PodPlace` and `document`; see `pod.py`."""
    document: str
    """Text for the target, JSON as a rule; at most `MAX_DOCUMENT_BYTES`."""
    settings: PodSettings = field(default_factory=PodSettings)
    """Of all its pods."""
    shared_memory_bytes: int = 0
    """Size of the memory-backed /dev/shm; 0 leaves the node's default of 64 MiB."""
    ports: Mapping[str, int] = field(default_factory=dict)
    """Ports that its processes listen at, by name."""
    service: PodService | None = None
    """How one of them is reached from outside of the cluster; None where none is."""

    def __post_init__(self) -> None:
        if not _LABEL.fullmatch(self.name):
            raise InputError(f"pod group {self.name!r}: small letters, digits and - are allowed")
        if self.num_pods < 1:
            raise InputError(f"pod group {self.name!r}: num_pods is {self.num_pods}, allowed: 1 or more")
        if not re.fullmatch(r"\w+(\.\w+)*:\w+", self.target):
            raise InputError(f"pod group {self.name!r}: target is {self.target!r}, allowed: module:function")
        if (size := len(self.document.encode())) > MAX_DOCUMENT_BYTES:
            raise InputError(
                f"pod group {self.name!r}: its options are {size} bytes, allowed: {MAX_DOCUMENT_BYTES}"
            )


@dataclass(frozen=True, kw_only=True, slots=True)
class StepPod:
    """The pod of the step that launches, which the owner object names as its owner."""

    name: str
    """`KFP_POD_NAME`."""
    uid: str
    """`KFP_POD_UID`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PodLaunch:
    """What one step starts on one cluster."""

    name: str
    """Deterministic (`launch_name`), a DNS label of at most 40 characters that all names begin with."""
    run_id: str
    """The pipeline run; an object that is there already is adopted when it carries the same."""
    step: str
    """The component, such as `train_gnn`."""
    namespace: str
    """Where the objects go."""
    groups: tuple[PodGroup, ...]
    """The pods; at least one group."""
    deadline_s: int
    """Seconds after which the cluster itself ends the pods (`activeDeadlineSeconds`)."""
    ttl_s: int = 3600
    """Seconds after the end for which finished objects stay readable (`ttlSecondsAfterFinished`)."""
    step_pod: StepPod | None = None
    """None on another cluster than the step's, and outside of a pod: then nothing owns the owner object."""
    runtime: str = "geokfp"
    """Name of the ClusterTrainingRuntime that a TrainJob refers to."""

    def __post_init__(self) -> None:
        if not _LABEL.fullmatch(self.name) or len(self.name) > 40:
            raise InputError(f"launch name {self.name!r}: a DNS label of at most 40 characters is needed")
        check_namespace(self.namespace)
        names = [group.name for group in self.groups]
        if not names or len(set(names)) != len(names):
            raise InputError(
                f"launch {self.name!r}: pod groups are {names}, allowed: one or more, unlike names"
            )
