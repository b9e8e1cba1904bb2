"""What pod i of `train_gnn` does: fetches its part and the job, runs its machine, hands over what came out.

All pods look for checkpoints before any process of theirs runs, and none writes one before all have met: so
all go on from the same epoch.
"""

import json
import tempfile
from dataclasses import replace
from pathlib import Path

from .._launch import Job
from .._launch.hand_over import HandOver
from .._launch.pod import PodPlace, PodWork, orders_of
from ..partition.own_part import open_part
from .checkpoint import last_epoch
from .own_predictions import OwnPredictions
from .pod_plan import DONE, JOB_FOLDER, START, STEP, TORCH_PORT, USER_CODE
from .predictions import given_name
from .site import machine_roles, pod_run_id, shared_memory_prefix
from .worker import BEST, HISTORY, JOB, TRAINER, WorkerJob, outcome_name


def machine(place: PodPlace, document: str) -> PodWork:
    """Prepares one machine of the site.

    Args:
        place: where this pod stands; its number is that of its part.
        document: made by `pod_plan.planned`.

    Raises:
        InputError: a part or the job cannot be fetched, or was altered.
    """
    body = json.loads(document)
    hand_over = HandOver(orders_of(document).hand_over)
    work = Path(tempfile.mkdtemp(prefix="geokfp-"))
    site = open_part(body["partitions"], body["site"], place.index, work / "partitions")
    hand_over.get_folder(JOB_FOLDER, work)
    job = _own_job(work, place, site.num_parts)
    roles = machine_roles(
        site,
        place,
        trainer=TRAINER,
        arguments=(str(job.write()),),
        work=work,
        num_samplers=job.config.num_samplers,
    )

    def finish() -> None:
        results = [outcome_name(place.index), *((BEST, HISTORY) if place.index == 0 else ())]
        if target := body["predictions"]:
            own = OwnPredictions(uri=body["partitions"], site=site, part=place.index)
            own.put(work, target, place.index)
            results.append(given_name(place.index))
        for name in results:
            hand_over.put_file(work / name, f"{DONE}/{name}")

    return PodWork(
        job=Job(
            name=STEP,
            roles=roles,
            deadline_s=float(body["timeout_s"]),
            shared_memory_prefixes=(shared_memory_prefix(pod_run_id(place)),),
        ),
        log_folder=work / "logs",
        finish=finish,
    )


def _own_job(work: Path, place: PodPlace, num_workers: int) -> WorkerJob:
    """Returns the job that was fetched to a folder, with what is this pod's own."""
    job = WorkerJob.read(work / JOB)
    start, user_code = work / START, work / USER_CODE
    return replace(
        job,
        work=work,
        source=replace(job.source, user_code=user_code if user_code.is_dir() else None),
        start=start if start.is_file() else None,
        address=place.addresses[place.group][0],
        port=TORCH_PORT,
        resume_epoch=last_epoch(job.checkpoints, num_workers) if job.checkpoints else 0,
    )
