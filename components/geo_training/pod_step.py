"""Runs the training of a `geo_train_gnn` in pods: what they are given, and what comes back."""

from dataclasses import replace
from pathlib import Path

from .._launch.launch_step import Surroundings
from ..training.predictions import GivenPart, complete, completed_or_removed, given_name
from ..training.worker import BEST, HISTORY
from .attempts import repeat
from .clusters.launching import TreeLaunch, Wanted, run_attempt
from .clusters.opened_root import opened_root
from .job import JOB, METRICS, GeoJob
from .planned_tree import PlannedTree
from .pod_machine import PARTITIONS, START, USER_CODE
from .pod_plan import PREDICTIONS
from .pod_restarts import forget_restarts
from .tree_job import TreeJob


def train_in_pods(
    job: GeoJob, partitions: Path, tree: PlannedTree, launch: TreeLaunch, surroundings: Surroundings
) -> bool:
    """Trains in pods; everything lies in the job's work folder then, as if all processes had run here.

    Where pods write the predictions to their artifact themselves, outcomes are of nodes with a split alone.

    Args:
        job: the training.
        partitions: the artifact, on this machine.
        tree: the training's tree.
        launch: what the pods are.
        surroundings: the step's.

    Returns:
        Whether pods have written the predictions.

    Raises:
        ProcessFailed: a pod failed, and it was not the root that was killed, or that too often.
    """
    given = launch.given
    if launch.body[PARTITIONS] == f"{given.uri}/{PARTITIONS}" and not launch.body["own"]:
        given.put_folder(partitions, PARTITIONS)
    if job.source.user_code is not None:
        given.put_folder(job.source.user_code, USER_CODE)
    if job.start is not None:
        given.put_file(job.start, START)
    folders = [f"{folder}/" for folder in job.folders.values()]
    wanted = Wanted(job.work, (*folders, f"{METRICS}/", BEST, HISTORY))

    def attempt(whole: TreeJob, number: int) -> None:
        with opened_root(launch, tree, number, whole, surroundings) as reached:
            # The same for a step that is run again, whose pods may still be there.
            told = replace(job, tree=replace(reached, run_id=f"{launch.name[-10:]}-{number}"))
            told.write()
            forget_restarts(launch.attempt(number))
            launch.attempt(number).put_file(job.work / JOB, JOB)
            run_attempt(launch, tree, number, surroundings, wanted)

    target = launch.body[PREDICTIONS]
    with completed_or_removed(target), launch.freed():
        repeat(job.tree, attempt)
        if target:
            told = [
                job.folder(site.name) / given_name(index)
                for site in job.tree.topology.sites
                for index in range(site.num_workers)
            ]
            complete(target, map(GivenPart.read, told))
    return bool(target)
