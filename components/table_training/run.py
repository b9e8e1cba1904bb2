"""What the component `geo_train` does.

Tries the model, plans the workers of all sites and the tree that joins them, runs them, writes model,
predictions and report.
"""

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from .._files import InputError
from .._files.checkpoints import digest
from .._launch import progress
from .._launch.launch_options import LAUNCH_OPTIONS
from .._launch.launch_step import Surroundings
from ..geo_training.at_sites.here import on_this_machine
from ..geo_training.at_sites.judged import read_judged, write_where
from ..geo_training.attempts import Kept, run_attempts
from ..geo_training.clusters.site_pods import has_stores
from ..geo_training.metrics.watch import measured_of
from ..geo_training.summary import Classes, Links
from ..geo_training.tree_job import TreeJob
from ..shard.shards import Shards, read_shards
from ..training.outcome import Outcome, confusion, judged_split, roc
from ..training.user_code import fetch_user_code
from ..training.work_folder import work_folder
from .config import GeoTableConfig
from .job import TOTALS, TableJob
from .pod_plan import planned_launch, planned_tree, within_reach
from .pod_step import train_in_pods
from .predictions import outcome_of, write_predictions
from .processes import processes
from .restarts import restarts
from .source import ModelSource
from .summary import write_report
from .trained_model import write_trained_model
from .trial import try_model

NO_PART_IN_RESULT = (
    "user_code",
    "checkpoint_folder",
    "checkpoint_every",
    *LAUNCH_OPTIONS,
    "topology",
    "certificates",
    "plain_text",
    "round_timeout_s",
    "metrics_host",
    "metrics_port",
    "timeout_s",
)
"""Options that may differ when a training goes on; of the user's code its files count, not where it lies."""


@dataclass(frozen=True, kw_only=True)
class Outputs:
    """Where the step's artifacts go."""

    model: Path
    """Folder of the trained model."""
    predictions: Path
    """Folder of the predictions."""
    report: Path
    """The HTML report."""


@dataclass(frozen=True, kw_only=True)
class Result:
    """What a training gave, for the component to log."""

    metrics: dict[str, float]
    """Finite values by name."""
    classes: Classes | None
    """How the rows were classified; None for regression."""


def run(
    config: GeoTableConfig, shards: Path, outputs: Outputs, surroundings: Surroundings | None = None
) -> Result:
    """Trains one model over all sites of a shards artifact.

    Args:
        config: what to train, and how the sites are joined.
        shards: a shards artifact.
        outputs: where to write.
        surroundings: what a step that may start pods has from where it runs.

    Raises:
        InputError: an input or option that is wrong, or a model that cannot be built or trained.
        ProcessFailed: a process failed; `<model>-work/logs` keeps what all of them printed.
    """
    surroundings = surroundings or Surroundings()
    config = surroundings.in_run(config)
    if config.launches_pods or not has_stores(config.topology):
        return _run(config, shards, outputs, surroundings)
    with on_this_machine(config, surroundings) as (options, around):
        return _run(options, shards, outputs, around)


def _run(config: GeoTableConfig, shards: Path, outputs: Outputs, surroundings: Surroundings) -> Result:
    with work_folder(outputs.model) as work:
        read_in = within_reach(config, read_shards(shards, elsewhere=config.launches_pods), surroundings)
        _check_workers(config, read_in)
        tree = planned_tree(config, read_in, work, surroundings.settings)
        source = _source(config, read_in, work)
        framework = try_model(source, work, timeout_s=float(config.timeout_s))
        job = _plan(config, read_in, source, tree.job, work)
        kept = _kept(config, source, read_in, outputs.model)
        job = job if kept is None else job.keeping_in(kept.folder)
        _say(job, framework)
        training, given = "", False
        if tree.places is None:
            surroundings.tell_created([])
            run_attempts(
                job.tree,
                lambda tree: processes(replace(job, tree=tree), framework),
                work / "logs",
                lambda tree: restarts(replace(job, tree=tree), framework),
            )
        else:
            launch = planned_launch(config, read_in, tree, surroundings.uris)
            training = launch.name
            given = train_in_pods(job, framework, tree, launch, surroundings)
        result = _write(job, framework, read_in, outputs, training, given=given)
    if kept is not None:
        kept.forget()
    return result


def _kept(config: GeoTableConfig, source: ModelSource, shards: Shards, model: Path) -> Kept | None:
    if not config.keeps_checkpoints:
        return None
    if config.launches_pods and not config.checkpoint_folder:
        progress("keeps no checkpoints: checkpoint_folder is empty, and pods see no folder beside the model")
        return None
    options = {name: value for name, value in asdict(config).items() if name not in NO_PART_IN_RESULT}
    of_training = digest(options, source.user_code, {"shards": shards.fingerprint})
    return Kept.of(model, config.checkpoint_folder, of_training)


def _check_workers(config: GeoTableConfig, shards: Shards) -> None:
    fewest = min(shards.sites, key=lambda site: site.num_train)
    if fewest.num_train < config.num_workers:
        raise InputError(
            f"num_workers {config.num_workers}: must be at most {fewest.num_train}, the training rows of "
            f"site {fewest.name!r}"
        )


def _source(config: GeoTableConfig, shards: Shards, work: Path) -> ModelSource:
    user_code = None
    if config.user_code:
        user_code = work.absolute() / "user_code"
        fetch_user_code(config.user_code, user_code)
    return ModelSource(
        entry_point=config.entry_point,
        algorithm=config.algorithm,
        hyperparameters=config.build_arguments,
        feature_shape=shards.feature_type.shape,
        num_classes=shards.num_classes,
        user_code=user_code,
    )


def _plan(config: GeoTableConfig, shards: Shards, source: ModelSource, tree: TreeJob, work: Path) -> TableJob:
    job = TableJob(config=config, source=source, work=work, sites=shards.sites, tree=tree)
    for site in shards.sites:
        job.folder(site.name).mkdir()
    job.weights.mkdir()
    return job


def _say(job: TableJob, framework: str) -> None:
    config, tree = job.config, job.tree
    progress(
        f"{len(tree.topology.sites)} sites, {len(tree.topology.workers)} workers of {framework}, joined by "
        f"{len(tree.topology.sites) + len(tree.roots)} aggregators ({config.synchronization}, compression "
        f"{config.compression}, transmission {config.transmission})"
    )


def _judged(job: TableJob, shards: Shards, predictions: Path | None, training: str) -> Classes | None:
    """Writes the predictions, unless pods have, and returns how the rows were classified."""
    num_workers = job.config.num_workers
    if predictions is not None and shards.stay_at_sites:
        write_where(predictions, {site.name: site.uri for site in shards.sites}, training)
        if not shards.num_classes:
            return None
        folders = [(job.folder(site.name), num_workers) for site in shards.sites]
        found = read_judged(folders, shards.num_classes)
        return Classes(found.matrix, shards.label_names, found.split, None)
    outcomes = [
        outcome_of(job.folder(site.name), site=site.name, workers=range(num_workers)) for site in shards.sites
    ]
    if predictions is not None:
        write_predictions(predictions, outcomes, shards.label_names)
    return _classes(outcomes, shards)


def _write(
    job: TableJob, framework: str, shards: Shards, outputs: Outputs, training: str, *, given: bool
) -> Result:
    config = job.config
    links = _links(job)
    metrics: dict[str, float] = {
        **json.loads((job.work / TOTALS).read_text(encoding="utf-8")),
        "wan_bytes_sent": float(sum(links[site.name].sent_bytes for site in shards.sites)),
        "wan_bytes_received": float(sum(links[site.name].received_bytes for site in shards.sites)),
    }
    history = _history(job)
    schema = {
        "framework": framework,
        "feature_dtype": shards.feature_type.dtype,
        "label_names": list(shards.label_names),
        "feature_names": list(shards.feature_names),
        "fingerprint": shards.fingerprint,
    }
    write_trained_model(
        outputs.model,
        source=job.source,
        weights=job.weights,
        schema=schema,
        metrics=metrics,
        history=history,
    )
    classes = _judged(job, shards, None if given else outputs.predictions, training)
    facts = {"model": config.entry_point or config.algorithm, "framework": framework, "seed": config.seed}
    measured = measured_of(job.tree, {name: link.both_ways for name, link in links.items()})
    write_report(
        outputs.report,
        {**facts, **metrics},
        history=history,
        classes=classes,
        measured=measured,
    )
    shown = "  ".join(f"{name} {value:.4f}" for name, value in metrics.items() if "_bytes_" not in name)
    progress(f"trained over {len(shards.sites)} sites: {shown}")
    return Result(metrics=metrics, classes=classes)


def _classes(outcomes: list[Outcome], shards: Shards) -> Classes | None:
    if not shards.num_classes:
        return None
    split = judged_split(outcomes)
    matrix = confusion(outcomes, shards.num_classes, split)
    return Classes(matrix, shards.label_names, split, roc(outcomes, shards.num_classes, split))


def _history(job: TableJob) -> list[dict[str, Any]]:
    rows = []
    for site in job.sites:
        path = job.folder(site.name) / "history-0.json"
        rows += [{"site": site.name, **row} for row in json.loads(path.read_text(encoding="utf-8"))]
    return rows


def _links(job: TableJob) -> dict[str, Links]:
    found = {}
    for site in job.sites:
        for index in range(job.config.num_workers):
            path = job.folder(site.name) / f"links-{index}.json"
            document = json.loads(path.read_text(encoding="utf-8"))
            found.update({name: Links(**counts) for name, counts in document.items()})
    return found
