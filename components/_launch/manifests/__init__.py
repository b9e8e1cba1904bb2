"""Turns what a step starts on a cluster into Kubernetes objects, one module a kind; pure, with no client.

Each kind says which objects there are, in the order of their creation, and by which DNS names pods find each
other. The first object is the headless Service named as the launch: it owns the others, so that one deletion
frees everything::

    Service NAME
    ├── job       Job NAME-GROUP ...            one Indexed Job a group
    ├── jobset    JobSet NAME                   one replicated job a group
    ├── trainjob  TrainJob NAME-GROUP ...       one a group, of a runtime that `geokfp manifests` writes
    └── dgljob    DGLJob NAME-GROUP ..., and a Service a pod

What is started again is started by the launcher, all groups together: no object restarts a pod by itself.
"""

from collections.abc import Mapping
from typing import Any, Protocol

from ..pods import PodLaunch
from . import dgljob, job, jobset, trainjob
from .object_names import (
    GROUP_LABEL,
    LAUNCH_LABEL,
    RUN_LABEL,
    STEP_LABEL,
    label_value,
    launch_name,
    opened_service_name,
)
from .owner import owned
from .pod_template import unescaped

__all__ = [
    "GROUP_LABEL",
    "LAUNCH_LABEL",
    "MANIFESTS",
    "RUN_LABEL",
    "STEP_LABEL",
    "Manifest",
    "label_value",
    "launch_name",
    "opened_service_name",
    "owned",
    "unescaped",
]


class Manifest(Protocol):
    """A kind of objects that pods are started by."""

    def objects(self, launch: PodLaunch) -> list[dict[str, Any]]:
        """Returns the objects in the order of their creation; the first owns the others.

        Raises:
            InputError: the kind cannot start this launch.
        """

    def hosts(self, launch: PodLaunch) -> dict[str, tuple[str, ...]]:
        """Returns the DNS names of each group's pods, in order."""


MANIFESTS: Mapping[str, Manifest] = {
    "job": job,
    "jobset": jobset,
    "trainjob": trainjob,
    "dgljob": dgljob,
}
"""Kinds by name, as the parameter `launcher` takes them."""
