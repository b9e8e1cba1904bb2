"""The processes of a `geo_train`: all of them, or those that a pod holds."""

from collections.abc import Container

from .._launch import Job, Replica, Role
from .job import TableJob
from .source import MXNET, TORCH

NODE = "geokfp.components.geo_training.server:main"
WORKER = "geokfp.components.table_training.worker:main"
PRELOAD = {
    TORCH: ("torch", "torch._dynamo", "geokfp.components.table_training.worker"),
    MXNET: ("torch", "mxnet", "geokfp.components.table_training.worker"),
}
"""What nodes and workers share by being forked from a process that has imported it, by framework."""
ONE_THREAD = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


def processes(job: TableJob, framework: str, members: Container[str] | None = None) -> Job:
    """Writes what the processes are given, and plans them.

    Args:
        job: the training.
        framework: `torch` or `mxnet`.
        members: the nodes and workers to start; None for all.
    """
    roles = roles_of(job, framework, members)
    return Job(name="geo_train", roles=roles, deadline_s=float(job.config.timeout_s))


def roles_of(
    job: TableJob, framework: str, members: Container[str] | None = None, of: str = ""
) -> tuple[Role, ...]:
    """Writes what the processes are given, and plans them; see `processes` and `TableJob.write`."""
    topology, job_path = job.tree.topology, str(job.write(of))
    # Named by folder: a site's own name may hold anything.
    folders = {root.name: root.name for root in job.tree.roots}
    folders |= {site.name: job.folder(site.name).name for site in topology.sites}
    nodes = [
        Replica(name=f"{folder}/aggregator", environment=ONE_THREAD, arguments=(name, str(job.tree_path(of))))
        for name, folder in folders.items()
        if members is None or name in members
    ]
    workers = [
        Replica(
            name=f"{folders[site.name]}/trainer-{index}", environment=ONE_THREAD, arguments=(name, job_path)
        )
        for site in topology.sites
        for index, name in enumerate(site.workers)
        if members is None or name in members
    ]
    return (
        Role(name="aggregator", target=NODE, replicas=tuple(nodes), preload=PRELOAD[framework]),
        Role(name="trainer", target=WORKER, replicas=tuple(workers), preload=PRELOAD[framework]),
    )
