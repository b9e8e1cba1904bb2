"""What the step `train_gnn` does with a launcher.

It hands the job to the pods of `pod_plan` and fetches what they leave, so that the work folder holds the same
as when trainers run beside the step.
"""

import json
import shutil
from dataclasses import replace
from pathlib import Path

from .._files.uri import is_object_store
from .._launch import progress
from .._launch.cluster import Placed
from .._launch.hand_over import HandOver
from .._launch.launch_step import Surroundings, freed, run_launches
from .._launch.pod import orders_of
from ..partition.partitions import SitePartitions
from .checkpoint import last_epoch
from .pod_plan import DONE, JOB_FOLDER, PARTITIONS, PREDICTIONS, START, USER_CODE, planned
from .predictions import GivenPart, complete, completed_or_removed, given_name
from .worker import BEST, HISTORY, WorkerJob, outcome_name


def train_in_pods(job: WorkerJob, site: SitePartitions, partitions: Path, surroundings: Surroundings) -> bool:
    """Trains in pods; best weights, history and outcomes lie in the work folder afterwards.

    Where pods write the predictions to their artifact themselves, outcomes are of nodes with a split alone.

    Args:
        job: as trainers get it; its config says how pods are started.
        site: the site to train at.
        partitions: the artifact, on this machine.
        surroundings: the step's.

    Returns:
        Whether pods have written the predictions.

    Raises:
        InputError: an option that is wrong, or the hand-over cannot be written or read.
        ProcessFailed: a pod failed.
    """
    config = job.config
    uri = surroundings.uris.get(PARTITIONS, "")
    inputs = {**surroundings.uris, PARTITIONS: uri if is_object_store(uri) else str(partitions)}
    (launch,) = planned(config, inputs, surroundings.settings, site=site)
    document = launch.groups[0].document
    hand_over, body = HandOver(orders_of(document).hand_over), json.loads(document)
    target = body[PREDICTIONS]
    hand_over.beat()
    _hand_job(job, hand_over)
    if body[PARTITIONS] != inputs[PARTITIONS]:
        hand_over.put_folder(partitions, PARTITIONS, only=("manifest.json", f"{site.graph_name}/"))
    progress(f"{site.name}: {site.num_parts} pods, each a trainer and a DGL server, by {config.launcher}")
    if job.checkpoints is None:
        progress("keeps no checkpoints: neither checkpoint_folder nor hand_over is a path that all pods see")
    elif resumed := last_epoch(job.checkpoints, site.num_parts):
        progress(f"resumes after epoch {resumed}, from the checkpoint in {job.checkpoints}")
    parts = range(site.num_parts)
    given = [given_name(part) for part in parts if target]
    with completed_or_removed(target), freed(hand_over):
        run_launches([(Placed(launch=launch, kind=config.launcher), hand_over)], config, surroundings)
        for name in (BEST, HISTORY, *(outcome_name(part) for part in parts), *given):
            hand_over.get_file(f"{DONE}/{name}", job.work / name)
        if target:
            complete(target, (GivenPart.read(job.work / name) for name in given))
    return bool(target)


def _hand_job(job: WorkerJob, hand_over: HandOver) -> None:
    folder = job.work / JOB_FOLDER
    folder.mkdir()
    if job.start is not None:
        shutil.copyfile(job.start, folder / START)
    if job.source.user_code is not None:
        shutil.copytree(
            job.source.user_code, folder / USER_CODE, ignore=shutil.ignore_patterns("__pycache__")
        )
    replace(job, work=folder).write()
    hand_over.put_folder(folder, JOB_FOLDER)
