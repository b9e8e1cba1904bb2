"""Plans the tree of a training over several sites, on this machine or in pods, from the step's options."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from .._files import InputError
from .._launch import free_ports
from .._launch.pods import PodSettings
from .clusters.options import TreeOptions
from .clusters.pod_tree import Groups, topology_of_groups
from .clusters.site_pods import TreePlaces, addresses, places
from .job import METRICS
from .nodes.shards import root_names
from .security import check_certificates
from .topology import read
from .tree_job import TreeJob


@dataclass(frozen=True, slots=True)
class PlannedTree:
    """A tree, and where it goes.

    Attributes:
        job: what its processes are given, but for the run's id.
        groups: its groups of pods.
        places: where the pods go; None where all processes are beside the step's own.
    """

    job: TreeJob
    groups: Groups
    places: TreePlaces | None

    @property
    def pod_places(self) -> TreePlaces:
        """Where the pods go, of a tree that has any."""
        assert self.places is not None
        return self.places


def plan_tree(
    options: TreeOptions, workers: Mapping[str, int], groups: Groups, work: Path, settings: PodSettings
) -> PlannedTree:
    """Plans the tree.

    Args:
        options: of the step.
        workers: number of workers by site.
        groups: the groups of pods that there are or would be.
        work: the step's work folder.
        settings: of pods where `options` say nothing.

    Raises:
        InputError: options do not go together, or not with these sites.
    """
    where, certificates = None, options.certificates
    if options.launcher == "local":
        topology = read(options.topology, workers, free_ports(len(workers) + 1))
        check_certificates(certificates, (*root_names(topology, options.transmission), *workers))
    else:
        common = replace(settings, service_account=options.service_account or settings.service_account)
        where = places(options.topology, list(workers), common, certificates)
        certificates = where.certificates
        topology = topology_of_groups(addresses(options.topology), workers, groups, apart=where.are_apart)
    job = TreeJob(
        run_id="",
        workers=workers,
        topology=topology,
        synchronization=options.synchronization,
        compression=options.compression,
        transmission=options.transmission,
        certificates=certificates,
        plain_text=options.plain_text,
        round_timeout_s=float(options.round_timeout_s),
        metrics_folder=str((work / METRICS).absolute()),
        metrics_host=options.metrics_host,
        metrics_port=options.metrics_port,
    )
    if where is not None and where.root.service is not None and len(root_pod_ports(job)) > 1:
        raise InputError(
            f"transmission {options.transmission!r}: must have one root with a service of "
            "topology['root_pod'], which opens one port"
        )
    return PlannedTree(job, groups, where)


def root_pod_ports(job: TreeJob) -> list[int]:
    """Returns the ports that the roots' pod listens at."""
    return [root.binds.port for root in job.roots if root.site is None]
