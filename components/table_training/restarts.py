"""How a worker of a `geo_train` that is killed is started again alone, and a whole site with its aggregator.

Each goes on from its own last checkpoint, and comes to where the others are by the answers that are kept
since then (`geo_training/checkpoints/answers`): a worker by those of its site's node, a site by the root's.
Without the node its workers cannot go on, as it takes with it what it had answered them.
"""

from collections.abc import Container
from dataclasses import replace
from pathlib import Path

from .._files.checkpoints import forget_after
from .._launch import Role
from .._launch.restarts import Restarting, Unit
from .job import TableJob
from .processes import roles_of


def restarts(job: TableJob, framework: str, members: Container[str] | None = None) -> Restarting | None:
    """Returns what starts processes again; None where nothing is kept that they could go on from.

    Args:
        job: the training, as its processes are given it.
        framework: `torch` or `mxnet`.
        members: the nodes and workers that are here; None for all.
    """
    return TableRestarts(job, framework, members) if job.tree.answers_workers else None


class TableRestarts:
    """See `Restarting`, and `restarts`."""

    def __init__(self, job: TableJob, framework: str, members: Container[str] | None = None) -> None:
        self._job = job
        self._framework = framework
        self._of: dict[str, tuple[str, str]] = {}
        self._units: tuple[Unit, ...] = ()
        for site in job.tree.topology.sites:
            self._add(site.name, [name for name in site.workers if members is None or name in members])

    @property
    def units(self) -> tuple[Unit, ...]:
        """See `Restarting`."""
        return self._units

    def wanted(self, unit: Unit) -> int:  # noqa: ARG002
        """See `Restarting`; nobody else restarts them."""
        return 0

    def ending(self, unit: Unit, number: int, cause: str) -> None:
        """See `Restarting`."""

    def again(self, unit: Unit, number: int) -> tuple[Role, ...]:  # noqa: ARG002
        """See `Restarting`."""
        site, worker = self._of[unit.name]
        names = (worker,) if worker else (site, *self._job.tree.topology.site(site).workers)
        job = replace(self._job, tree=self._job.tree.coming_back(site, worker))
        if not worker:  # else one of them alone could later go on from where the others have not been again
            members = [job.tree.member(name) for name in names]
            forget_after(Path(job.tree.checkpoint_folder), job.tree.resume, members)
        return roles_of(job, self._framework, names, unit.name.replace("/", "-"))

    def _add(self, site: str, workers: list[str]) -> None:
        folder, numbers = self._job.folder(site).name, self._job.tree.topology.site(site).workers
        shown = {f"{folder}/trainer-{numbers.index(name)}": (site, name) for name in workers}
        self._units += tuple(Unit(name, frozenset((name,))) for name in shown)
        self._of |= shown
        if self._job.tree.keeps_answers:
            self._units += (Unit(folder, frozenset((f"{folder}/aggregator", *shown))),)
            self._of[folder] = (site, "")
