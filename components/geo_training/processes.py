"""The processes of a `geo_train_gnn`: all of them on this machine, or those that a pod holds."""

from collections.abc import Container, Iterable

from .._launch import Job, Replica, Role
from .._launch.pod import PodPlace
from ..partition.partitions import SitePartitions
from ..training.site import PRELOAD, machine_roles, pod_run_id, shared_memory_prefix, site_roles
from .job import GeoJob

TRAINER = "geokfp.components.geo_training.worker:main"
NODE = "geokfp.components.geo_training.server:main"
NAME = "geo_train_gnn"


def processes(job: GeoJob, sites: Iterable[SitePartitions]) -> Job:
    """Writes what the processes are given, and plans all of them on this machine."""
    job_path = str(job.write())
    roles = [_nodes(job)]
    for site in sites:
        roles += site_roles(
            site,
            trainer=TRAINER,
            arguments=(job_path,),
            work=job.folder(site.name),
            run_id=job.tree.run_id,
            num_samplers=job.config.num_samplers,
        )
    return Job(
        name=NAME,
        roles=tuple(roles),
        deadline_s=float(job.config.timeout_s),
        shared_memory_prefixes=(shared_memory_prefix(job.tree.run_id),),
    )


def site_processes(job: GeoJob, site: SitePartitions, number: int) -> tuple[Role, ...]:
    """Writes what the processes of a site are given that is started again, and plans these.

    Args:
        job: the training, with the checkpoint that the site goes on from.
        site: the site.
        number: how often it was started again, with this.
    """
    folder = job.folders[site.name]
    return (
        _nodes(job, (site.name,), of=folder),
        *site_roles(
            site,
            trainer=TRAINER,
            arguments=(str(job.write(folder)),),
            work=job.folder(site.name),
            run_id=f"{job.tree.run_id}-{number}",
            num_samplers=job.config.num_samplers,
        ),
    )


def pod_processes(job: GeoJob, place: PodPlace, members: Container[str], site: SitePartitions | None) -> Job:
    """Writes what the processes are given, and plans those of one pod; see `pod_roles`."""
    return Job(
        name=NAME,
        roles=pod_roles(job, place, members, site),
        deadline_s=float(job.config.timeout_s),
        shared_memory_prefixes=(shared_memory_prefix(pod_run_id(place)),),
    )


def pod_roles(
    job: GeoJob, place: PodPlace, members: Container[str], site: SitePartitions | None
) -> tuple[Role, ...]:
    """Writes what the processes of a pod are given, and plans these.

    Args:
        job: the training, with folders and addresses as the pod sees them.
        place: where the pod stands.
        members: the nodes of the tree that it holds, beside a worker.
        site: the site whose machine it is, with its part; None for the roots' pod.
    """
    job_path = str(job.write())
    roles = [_nodes(job, members)]
    if site is not None:
        roles += machine_roles(
            site,
            place,
            trainer=TRAINER,
            arguments=(job_path,),
            work=job.folder(site.name),
            num_samplers=job.config.num_samplers,
        )
    return tuple(role for role in roles if role.replicas)


def _nodes(job: GeoJob, members: Container[str] | None = None, of: str = "") -> Role:
    # Named by folder, as the trainers are: a site's own name may hold anything.
    names = {root.name: root.name for root in job.tree.roots}
    names |= {site.name: job.folders[site.name] for site in job.tree.topology.sites}
    replicas = [
        Replica(name=f"{shown}/aggregator", arguments=(name, str(job.tree_path(of))))
        for name, shown in names.items()
        if members is None or name in members
    ]
    return Role(name="aggregator", target=NODE, replicas=tuple(replicas), preload=PRELOAD)
