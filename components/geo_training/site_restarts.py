"""How a whole site of a `geo_train_gnn` on this machine is started again when one of its processes is killed.

Its trainers, DGL servers and aggregator depend on each other, so they are one unit. They go on from the last
checkpoint that all of them have whole, and come to where the others wait by the answers that the root has
kept (`checkpoints/answers`).
"""

from collections.abc import Iterable
from dataclasses import replace

from .._launch import Role
from .._launch.restarts import MOST, Restarting, Unit
from ..partition.partitions import SitePartitions
from ..training.site import shared_memory_prefix
from .job import GeoJob
from .processes import site_processes


def site_restarts(job: GeoJob, sites: Iterable[SitePartitions]) -> Restarting | None:
    """Returns what starts sites again; None where nothing is kept that they could go on from."""
    return SiteRestarts(job, sites) if job.tree.keeps_answers else None


def coming_back(job: GeoJob, site: str) -> GeoJob:
    """Returns what the processes of a site are given that is started again now."""
    return replace(job, tree=job.tree.coming_back(site))


class SiteRestarts:
    """See `Restarting`.

    Args:
        job: the training, as its processes are given it.
        sites: all sites.
    """

    def __init__(self, job: GeoJob, sites: Iterable[SitePartitions]) -> None:
        self._job = job
        self._sites = {job.folders[site.name]: site for site in sites}
        self._units = tuple(self._unit(folder, site) for folder, site in self._sites.items())

    @property
    def units(self) -> tuple[Unit, ...]:
        """See `Restarting`."""
        return self._units

    def wanted(self, unit: Unit) -> int:  # noqa: ARG002
        """See `Restarting`; nobody else restarts a site."""
        return 0

    def ending(self, unit: Unit, number: int, cause: str) -> None:
        """See `Restarting`."""

    def again(self, unit: Unit, number: int) -> tuple[Role, ...]:
        """See `Restarting`."""
        site = self._sites[unit.name]
        return site_processes(coming_back(self._job, site.name), site, number)

    def _unit(self, folder: str, site: SitePartitions) -> Unit:
        run, group = self._job.tree.run_id, site.graph_name
        pairs = [f"{group}/{role}-{part}" for role in ("server", "trainer") for part in range(site.num_parts)]
        runs = (run, *(f"{run}-{number}" for number in range(1, MOST + 1)))
        prefixes = tuple(f"{shared_memory_prefix(each)}{group}-m" for each in runs)
        return Unit(folder, frozenset((f"{folder}/aggregator", *pairs)), prefixes)
