"""Runs the training of a `geo_train` in pods: what they are given, and what comes back."""

from dataclasses import replace

from .._launch.launch_step import Surroundings
from ..geo_training.attempts import repeat
from ..geo_training.clusters.launching import TreeLaunch, Wanted, run_attempt
from ..geo_training.clusters.opened_root import opened_root
from ..geo_training.job import METRICS
from ..geo_training.planned_tree import PlannedTree
from ..geo_training.tree_job import TreeJob
from ..training.predictions import GivenPart, complete, completed_or_removed, given_name
from .job import JOB, TOTALS, WEIGHTS, TableJob
from .pod_worker import FRAMEWORK, PREDICTIONS, ROWS, USER_CODE


def train_in_pods(
    job: TableJob, framework: str, tree: PlannedTree, launch: TreeLaunch, surroundings: Surroundings
) -> bool:
    """Trains in pods; everything lies in the job's work folder then, as if all processes had run here.

    Where pods write the predictions to their artifact themselves, outcomes are of rows with a split alone.

    Args:
        job: the training.
        framework: `torch` or `mxnet`.
        tree: its tree.
        launch: what the pods are.
        surroundings: the step's.

    Returns:
        Whether pods have written the predictions.

    Raises:
        ProcessFailed: a pod failed, and it was not the root that was killed, or that too often.
    """
    given = launch.given
    given.put_text(FRAMEWORK, framework)
    for site in (site for site in job.sites if not site.uri):
        given.put_folder(site.directory, f"{ROWS}/{site.directory.name}")
    if job.source.user_code is not None:
        given.put_folder(job.source.user_code, USER_CODE)
    folders = [f"{folder}/" for folder in tree.groups.of_sites.values()]
    wanted = Wanted(job.work, (*folders, f"{WEIGHTS}/", f"{METRICS}/", TOTALS))

    def attempt(whole: TreeJob, number: int) -> None:
        with opened_root(launch, tree, number, whole, surroundings) as reached:
            # The same for a step that is run again, whose pods may still be there.
            told = replace(job, tree=replace(reached, run_id=f"{launch.name[-10:]}-{number}"))
            told.write()
            launch.attempt(number).put_file(job.work / JOB, JOB)
            run_attempt(launch, tree, number, surroundings, wanted)

    target = str(launch.body.get(PREDICTIONS, ""))
    with completed_or_removed(target), launch.freed():
        repeat(job.tree, attempt)
        if target:
            numbers = range(job.config.num_workers)
            told = [job.folder(site.name) / given_name(number) for site in job.sites for number in numbers]
            complete(target, map(GivenPart.read, told))
    return bool(target)
