"""How the pods of one site of a `geo_train_gnn` start its processes again together when one is killed.

Each pod supervises its own processes. What they tell each other lies in the attempt's hand-over, for the
first restart of the site `site-0`::

    restarts/site-0/
      1-wanted     why, by the pod in which a process was killed: the others end theirs too
      1            the checkpoint to go on from, by the site's first pod

Processes that come back listen at other ports than those before, which may live a moment longer elsewhere.
"""

import time
from collections.abc import Callable, Container
from dataclasses import dataclass, replace

from .._files import InputError
from .._launch import Role
from .._launch.hand_over import HandOver
from .._launch.pod import PodPlace
from .._launch.restarts import MOST, Unit
from ..partition.partitions import SitePartitions
from ..training.site import pod_run_id, shared_memory_prefix
from .job import GeoJob
from .processes import pod_roles
from .site_restarts import coming_back
from .tree_job import TreeJob

RESTARTS = "restarts"
"""Folder of the hand-over."""
LOOKS_S = 1.0
"""Seconds between two looks at what other pods say."""
OTHERS_S = 10.0
"""Seconds in which another pod may say that it has lost a process, where one here has only lost its peer."""
DECIDES_S = 60.0
"""Seconds that the site's first pod has to end its processes and say where to go on."""


def forget_restarts(hand_over: HandOver) -> None:
    """Removes what pods told each other: those of an earlier try tell nothing of this one."""
    hand_over.inside(RESTARTS).remove()


@dataclass(frozen=True, kw_only=True, slots=True)
class SitePod:
    """One pod of a site."""

    place: PodPlace
    """Where it stands."""
    members: Container[str]
    """The nodes and workers that it holds."""
    site: SitePartitions
    """Its site, with its part."""

    def roles(self, job: GeoJob, restart: int = 0) -> tuple[Role, ...]:
        """See `pod_roles`."""
        return pod_roles(job, replace(self.place, restart=restart), self.members, self.site)


class PodRestarts:
    """See `Restarting`; of one pod of a site.

    Args:
        job: the training, as the pod's processes are given it.
        pod: the pod.
        hand_over: the attempt's.
        clock: seconds on a clock that never goes back.
        pause: waits so many seconds.
    """

    def __init__(
        self,
        job: GeoJob,
        pod: SitePod,
        hand_over: HandOver,
        clock: Callable[[], float] = time.monotonic,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._job = job
        self._pod = pod
        self._place = pod.place
        self._said = hand_over.inside(f"{RESTARTS}/{pod.place.group}")
        self._clock = clock
        self._pause = pause
        self._number = 0
        self._looked = clock()
        names = (replica.name for role in pod.roles(job) for replica in role.replicas)
        runs = (pod_run_id(replace(pod.place, restart=number)) for number in range(MOST + 1))
        prefixes = tuple(shared_memory_prefix(run) + pod.site.graph_name for run in runs)
        self._units = (Unit(pod.place.group, frozenset(names), prefixes, OTHERS_S),)

    @property
    def units(self) -> tuple[Unit, ...]:
        """See `Restarting`."""
        return self._units

    def wanted(self, unit: Unit) -> int:  # noqa: ARG002
        """See `Restarting`."""
        now = self._clock()
        if now - self._looked < LOOKS_S:
            return self._number
        self._looked = now
        return self._number + (self._read(f"{self._number + 1}-wanted") is not None)

    def ending(self, unit: Unit, number: int, cause: str) -> None:  # noqa: ARG002
        """See `Restarting`."""
        self._number = number
        if self._read(f"{number}-wanted") is None:
            self._said.put_text(f"{number}-wanted", f"{self._place.name}: {cause}")

    def again(self, unit: Unit, number: int) -> tuple[Role, ...]:  # noqa: ARG002
        """See `Restarting`."""
        site = self._pod.site.name
        job = coming_back(self._job, site)
        if self._place.index == 0:
            self._said.put_text(str(number), str(job.tree.resume))
        resume = int(self._decided(number))
        tree = replace(_at_other_port(job.tree, site, number), resume=resume)
        return self._pod.roles(replace(job, tree=tree), number)

    def _decided(self, number: int) -> str:
        until = self._clock() + DECIDES_S
        while (said := self._read(str(number))) is None:
            if self._clock() > until:
                raise InputError(
                    f"{self._said.uri}: the first pod of {self._place.group} has not said within "
                    f"{DECIDES_S:g} s where the site goes on"
                )
            self._pause(LOOKS_S / 2)
        return said

    def _read(self, name: str) -> str | None:
        try:
            return self._said.get_text(name)
        except InputError:  # out of reach for a moment; the launcher's silence ends the pod when it lasts
            return None


def _at_other_port(tree: TreeJob, site: str, number: int) -> TreeJob:
    shape = tree.topology
    sites = tuple(
        replace(each, listens=replace(each.listens, port=each.listens.port + number))
        if each.name == site
        else each
        for each in shape.sites
    )
    return replace(tree, topology=replace(shape, sites=sites))
