"""Where a launch runs, and how it is watched: frozen values, with no client."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .._files import InputError
from .pods import KINDS, PodLaunch

Document = Mapping[str, Any]
"""An object as the API server writes it in JSON."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Cluster:
    """One cluster's API server: this pod's own by default."""

    name: str = ""
    """Shown before the replicas' names where several clusters run; such as the site's name."""
    kubeconfig: str = ""
    """File with servers and credentials; empty is `KUBECONFIG` or `~/.kube/config` if a context is given."""
    context: str = ""
    """Entry of that file; empty is its current one. Without both, the service account of this pod is used."""

    @property
    def in_cluster(self) -> bool:
        """Whether it is the cluster of this pod."""
        return not (self.kubeconfig or self.context)

    def __str__(self) -> str:
        where = "this pod's own" if self.in_cluster else f"context {self.context!r} of {self.kubeconfig!r}"
        return f"cluster {self.name or '(' + where + ')'}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Placed:
    """A launch, what kind of objects it becomes, and where."""

    launch: PodLaunch
    """The pods."""
    kind: str
    """One of `KINDS`."""
    cluster: Cluster = field(default_factory=Cluster)
    """Where they run."""

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise InputError(f"launcher is {self.kind!r}, allowed on a cluster: {', '.join(KINDS)}")


@dataclass(frozen=True, kw_only=True, slots=True)
class WatchSettings:
    """How patiently a launch is watched; all in seconds."""

    poll_s: float = 5.0
    """Between two looks at the status at first, and after each change."""
    max_poll_s: float = 30.0
    """Between two looks when nothing changes."""
    start_timeout_s: float = 600.0
    """Until all pods have run at least once: time for nodes to be added and images to be pulled."""
    pull_patience_s: float = 5.0
    """For which an image that cannot be pulled is tried again."""
    others_s: float = 5.0
    """In which the cause of an end that another's end would explain may still come in."""
    reach_s: float = 60.0
    """For which an API server that does not answer at the start is tried."""
    retry_s: float = 600.0
    """For which one that does not answer later is tried; the pods go on meanwhile."""
    request_s: float = 30.0
    """For one answer."""
    gone_s: float = 60.0
    """For deleted objects to be gone."""
    drain_s: float = 5.0
    """For the rest of the logs of pods that have ended."""
    beat_s: float = 10.0
    """Between two signs of life of the launcher."""
    termination_s: float = 0.5
    """From SIGTERM to the end of this process; the deletion must be accepted within it."""

    def __post_init__(self) -> None:
        for name in self.__slots__:
            if not getattr(self, name) > 0:
                raise InputError(f"{name} is {getattr(self, name)}, allowed: more than 0 s")
        if self.max_poll_s < self.poll_s:
            raise InputError(f"max_poll_s is {self.max_poll_s}, allowed: at least poll_s, {self.poll_s}")
