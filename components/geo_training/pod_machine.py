"""What a pod of a `geo_train_gnn` holds: a part of its site, and what of the tree's processes stands in it.

Drawing of the folder that it works in::

    <temporary folder>/
      geo-job.json        as the step wrote it, but for the places of files and nodes
      start.safetensors   only where a trained GNN is started from
      user_code/          only with `user_code`
      partitions/         the pod's own part, where it lies in an object store
      work/               what its processes leave (see `job`), which goes back as `results/<pod>`
      logs/

"""

import json
import tempfile
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from .._launch.hand_over import HandOver
from .._launch.pod import PodPlace, PodWork, orders_of
from ..partition.own_part import open_part
from ..training.own_predictions import OwnPredictions
from .at_sites.judged import StayingPart
from .clusters.pod_tree import Groups, in_pods, members_in
from .clusters.results import give_back
from .job import JOB, METRICS, GeoJob
from .pod_restarts import PodRestarts, SitePod
from .processes import pod_processes

OWN_FOLDER = "site-0"
"""Folder of the one site in the artifact that lies in a site's own store."""
TARGET = "geokfp.components.geo_training.pod_machine:machine"
PARTITIONS, START, USER_CODE = "partitions", "start.safetensors", "user_code"
"""Names in what the step gives: the partitions, the weights to start from, the user's code."""


def machine(place: PodPlace, document: str) -> PodWork:
    """Fetches what the pod needs, and plans its processes; see `PodGroup.target`."""
    body, folder = json.loads(document), Path(tempfile.mkdtemp(prefix="geokfp-"))
    given, attempt = HandOver(body["given"]), HandOver(orders_of(document).hand_over)
    attempt.get_file(JOB, folder / JOB)
    whole = GeoJob.read(folder / JOB)
    groups = Groups(whole.folders)
    job = _here(whole, folder, place)
    if job.source.user_code is not None:
        given.get_folder(USER_CODE, job.source.user_code)
    if job.start is not None:
        given.get_file(START, job.start)
    site, finish = None, partial(give_back, attempt, job.work, place.name)
    if name := groups.site(place.group):
        uri = body["own"].get(place.group, "")
        # A site's own artifact knows of no other: it is the first one there.
        parts, at = (uri, OWN_FOLDER) if uri else (body["partitions"], place.group)
        site = replace(open_part(parts, at, place.index, folder / PARTITIONS), name=name)
        if target := body["predictions"]:
            own = OwnPredictions(uri=parts, site=site, part=place.index)
            number = job.tree.topology.workers.index(f"{name}/trainer-{place.index}")
            finish = partial(_put_first, partial(own.put, job.folder(name), target, number), finish)
        if uri:
            staying = StayingPart(site, uri, place.index, tuple(body["label_names"]))
            finish = partial(
                staying.hand_back, attempt, job.work, job.folder(name), place.name, body["training"]
            )
    for name in job.folders:
        job.folder(name).mkdir(parents=True)
    members = members_in(job.tree, groups, place.group, place.index)
    restarting = None
    if site is not None and job.tree.keeps_answers:
        restarting = PodRestarts(job, SitePod(place=place, members=members, site=site), attempt)
    return PodWork(
        job=pod_processes(job, place, members, site),
        log_folder=folder / "logs",
        finish=finish,
        restarting=restarting,
    )


def _put_first(put: Callable[[], None], then: Callable[[], None]) -> None:
    put()
    then()


def _here(job: GeoJob, folder: Path, place: PodPlace) -> GeoJob:
    work = folder / "work"
    return replace(
        job,
        work=work,
        source=replace(job.source, user_code=job.source.user_code and folder / USER_CODE),
        start=job.start and folder / START,
        tree=replace(in_pods(job.tree, place.addresses), metrics_folder=str(work / METRICS)),
    )
