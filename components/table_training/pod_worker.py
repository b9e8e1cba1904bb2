"""What a pod of a `geo_train` holds: its site's rows, and the processes of the tree that stand in it.

Drawing of the folder that it works in::

    <temporary folder>/
      table-job.json   as the step wrote it, but for the places of files and nodes
      user_code/       only with `user_code`
      shards/site-0/   the rows of the pod's own site, given or from the site's own store; of no other
      work/            what its processes leave (see `job`), which goes back as `results/<pod>`
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
from ..geo_training.clusters.pod_tree import Groups, in_pods, members_in
from ..geo_training.clusters.results import give_back
from ..geo_training.job import METRICS
from ..shard.own_shard import fetch_shard
from .job import JOB, TableJob
from .predictions import OwnRows, put_own
from .processes import processes
from .restarts import restarts
from .source import TORCH
from .staying import StayingRows

TARGET = "geokfp.components.table_training.pod_worker:worker"
PREDICTIONS = "predictions"
"""URI in the document, where the pod writes the predictions itself."""
FRAMEWORK, ROWS, USER_CODE = "framework", "rows", "user_code"
"""Names in what the step gives: the model's framework, a folder of rows a site, the user's code."""


def worker(place: PodPlace, document: str) -> PodWork:
    """Fetches what the pod needs, and plans its processes; see `PodGroup.target`."""
    body, folder = json.loads(document), Path(tempfile.mkdtemp(prefix="geokfp-"))
    given, attempt = HandOver(body["given"]), HandOver(orders_of(document).hand_over)
    attempt.get_file(JOB, folder / JOB)
    whole = TableJob.read(folder / JOB)
    if whole.source.user_code is not None:
        given.get_folder(USER_CODE, folder / USER_CODE)
    groups = Groups({site.name: site.directory.name for site in whole.sites})
    job, finish = _here(whole, folder, place), partial(give_back, attempt, folder / "work", place.name)
    if name := groups.site(place.group):
        site = job.site(name)
        if site.uri:
            fetch_shard(site.uri, site.directory)
            staying = StayingRows(site, place.index, tuple(body["label_names"]), body["training"])
            finish = partial(staying.hand_back, attempt, job.work, job.folder(name), place.name)
        else:
            given.get_folder(f"{ROWS}/{place.group}", site.directory)
        if target := body.get(PREDICTIONS):
            number = job.tree.topology.workers.index(f"{name}/trainer-{place.index}")
            own = OwnRows(site=name, worker=place.index, number=number)
            finish = partial(
                _put_first, partial(put_own, job.folder(name), target, own, body["label_names"]), finish
            )
    for site in job.sites:
        job.folder(site.name).mkdir(parents=True)
    job.weights.mkdir()
    members = members_in(job.tree, groups, place.group, place.index)
    framework = given.get_text(FRAMEWORK) or TORCH
    return PodWork(
        job=processes(job, framework, members),
        log_folder=folder / "logs",
        finish=finish,
        restarting=restarts(job, framework, members),
    )


def _put_first(put: Callable[[], None], then: Callable[[], None]) -> None:
    put()
    then()


def _here(job: TableJob, folder: Path, place: PodPlace) -> TableJob:
    work = folder / "work"
    tree = replace(in_pods(job.tree, place.addresses), metrics_folder=str(work / METRICS))
    sites = tuple(replace(site, directory=folder / "shards" / site.directory.name) for site in job.sites)
    user_code = None if job.source.user_code is None else folder / "user_code"
    return replace(job, work=work, sites=sites, tree=tree, source=replace(job.source, user_code=user_code))
