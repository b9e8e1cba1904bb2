"""What the component `geo_train_gnn` does.

Plans the processes of all sites and of the tree that joins them, runs them, writes model, predictions
and report.
"""

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from .._files import InputError, sha256
from .._files.checkpoints import digest
from .._launch import progress
from .._launch.launch_step import Surroundings
from ..partition.partitions import Partitions, read_partitions
from ..training.checkpoint import NO_PART_IN_RESULT, training_digest
from ..training.outcome import (
    accuracies,
    confusion,
    judged_split,
    read_outcome,
    roc,
    write_predictions,
)
from ..training.run import Outputs, Result, model_source
from ..training.shared_memory import check_shared_memory
from ..training.trained_gnn import ModelSource, TrainedGnn, read_trained_gnn, write_trained_gnn
from ..training.warm_start import check_start
from ..training.work_folder import work_folder
from ..training.worker import BEST, HISTORY
from .at_sites.here import on_this_machine
from .at_sites.judged import read_judged, write_where
from .attempts import Kept, run_attempts
from .clusters.site_pods import has_stores
from .config import GeoTrainingConfig
from .job import GeoJob
from .metrics.watch import measured_of
from .pod_plan import planned_launch, planned_tree, within_reach
from .pod_step import train_in_pods
from .processes import processes
from .site_restarts import site_restarts
from .summary import Alone, Classes, Links, write_report
from .tree_job import TreeJob

__all__ = ["Outputs", "Result", "run"]

NO_PART = (
    *NO_PART_IN_RESULT,
    "checkpoint_every",
    "topology",
    "certificates",
    "plain_text",
    "compare_alone",
    "round_timeout_s",
    "metrics_host",
    "metrics_port",
)
"""Options that may differ when a training over all sites goes on."""


def run(
    config: GeoTrainingConfig,
    partitions: Path,
    trained: Path | None,
    outputs: Outputs,
    surroundings: Surroundings | None = None,
) -> Result:
    """Trains one GNN over all sites of a partitions artifact.

    Args:
        config: how to train, and how the sites are joined.
        partitions: a partitions artifact.
        trained: a trained GNN to start from, whose architecture is taken too; None for fresh weights.
        outputs: where to write.
        surroundings: what pods are started with, by any launcher but `local`.

    Raises:
        InputError: an input or option that is wrong, or too little shared memory.
        ProcessFailed: a process failed; `<model>-work/logs` keeps what all of them printed.
    """
    surroundings = surroundings or Surroundings()
    config = surroundings.in_run(config)
    if config.launches_pods or not has_stores(config.topology):
        return _run(config, partitions, trained, outputs, surroundings)
    with on_this_machine(config, surroundings) as (options, around):
        return _run(options, partitions, trained, outputs, around)


def _run(
    config: GeoTrainingConfig,
    partitions: Path,
    trained: Path | None,
    outputs: Outputs,
    surroundings: Surroundings,
) -> Result:
    with work_folder(outputs.model) as work:
        parts = within_reach(
            config, read_partitions(partitions, elsewhere=config.launches_pods), surroundings
        )
        if all(site.num_train == 0 for site in parts.sites):
            raise InputError("partitions: no site has a training node")
        if not config.launches_pods:
            check_shared_memory(parts.sites, config.num_samplers)
        tree = planned_tree(config, parts, work, surroundings.settings)
        job = _plan(config, parts, _start(trained, parts), work, tree.job)
        kept = _kept(job, partitions, outputs.model)
        job = job if kept is None else job.keeping_in(kept.folder)
        _say(job)
        training, given = "", False
        if config.launches_pods:
            launch = planned_launch(config, parts, tree, surroundings.uris)
            training = launch.name
            given = train_in_pods(job, partitions, tree, launch, surroundings)
        else:
            run_attempts(
                job.tree,
                lambda tree: processes(replace(job, tree=tree), parts.sites),
                work / "logs",
                lambda tree: site_restarts(replace(job, tree=tree), parts.sites),
            )
            surroundings.tell_created([])
        result = _write(job, parts, outputs, training, given=given)
    if kept is not None:
        kept.forget()
    return result


def _kept(job: GeoJob, partitions: Path, model: Path) -> Kept | None:
    config = job.config
    if not config.checkpoint_every:
        return None
    if config.launches_pods and not config.checkpoint_folder:
        progress("keeps no checkpoints: checkpoint_folder is empty, and pods see no folder beside the model")
        return None
    start = "" if job.start is None else sha256(job.start)
    of_training = training_digest(config, job.source, partitions, NO_PART)
    return Kept.of(model, config.checkpoint_folder, digest({"start": start}, None, {"of": of_training}))


def _start(trained: Path | None, parts: Partitions) -> TrainedGnn | None:
    if trained is None:
        return None
    gnn = read_trained_gnn(trained)
    check_start(gnn, parts, "trained")
    return gnn


def _plan(
    config: GeoTrainingConfig, parts: Partitions, start: TrainedGnn | None, work: Path, tree: TreeJob
) -> GeoJob:
    source: ModelSource
    if start is None:
        source = model_source(config.training, parts, work)
    else:
        source = start.source
        config = replace(config, num_layers=source.num_layers)
        progress(f"starts from a trained model: {source.entry_point or source.architecture}")
    for site in parts.sites:
        (work / site.directory.name).mkdir()
    return GeoJob(
        config=config,
        source=source,
        start=None if start is None else start.weights,
        work=work,
        folders={site.name: site.directory.name for site in parts.sites},
        tree=tree,
    )


def _say(job: GeoJob) -> None:
    num_sites = len(job.tree.topology.sites)
    progress(
        f"{num_sites} sites, {len(job.tree.topology.workers)} trainers, "
        f"joined by {num_sites + len(job.tree.roots)} aggregators "
        f"({job.config.synchronization}, compression {job.config.compression}, "
        f"transmission {job.config.transmission})"
    )


def _judged(
    job: GeoJob, parts: Partitions, predictions: Path | None, training: str
) -> tuple[dict[str, float], Classes]:
    """Writes the predictions, unless pods have, and returns accuracies and how the nodes were classified."""
    if predictions is not None and parts.stay_at_sites:
        folders = [(job.folder(site.name), site.num_parts) for site in parts.sites]
        found = read_judged(folders, parts.num_classes)
        write_where(predictions, {site.name: site.uri for site in parts.sites}, training)
        return found.accuracies, Classes(found.matrix, parts.label_names, found.split, None)
    outcomes = [
        read_outcome(
            job.folder(site.name),
            site=site.name,
            num_parts=site.num_parts,
            node_ids=None if predictions is None else site.node_ids(),
        )
        for site in parts.sites
    ]
    if predictions is not None:
        write_predictions(predictions, outcomes, parts.label_names)
    split = judged_split(outcomes)
    matrix, curve = confusion(outcomes, parts.num_classes, split), roc(outcomes, parts.num_classes, split)
    return accuracies(outcomes), Classes(matrix, parts.label_names, split, curve)


def _write(job: GeoJob, parts: Partitions, outputs: Outputs, training: str, *, given: bool) -> Result:
    accurate, classes = _judged(job, parts, None if given else outputs.predictions, training)
    history: dict[str, Any] = json.loads((job.work / HISTORY).read_text(encoding="utf-8"))
    rows = history["rows"]
    links = _links(job)
    alone = _alone(job)
    metrics = {
        **accurate,
        "epochs_run": float(len(rows)),
        "best_epoch": float(history["best_epoch"]),
        "seconds_per_epoch": float(np.mean([row["seconds"] for row in rows])),
        "wan_bytes_sent": float(sum(links[name].sent_bytes for name in job.tree.workers)),
        "wan_bytes_received": float(sum(links[name].received_bytes for name in job.tree.workers)),
        **_alone_accuracies(alone),
    }
    schema = {
        "label_names": list(parts.label_names),
        "feature_names": list(parts.feature_names),
        "fingerprint": parts.fingerprint,
    }
    write_trained_gnn(
        outputs.model,
        source=job.source,
        weights=job.work / BEST,
        schema=schema,
        metrics=metrics,
        history=rows,
    )
    facts = {"model": job.source.entry_point or job.source.architecture, "seed": job.config.seed, **metrics}
    measured = measured_of(job.tree, {name: link.both_ways for name, link in links.items()})
    write_report(outputs.report, facts, history=rows, alone=alone, classes=classes, measured=measured)
    shown = "  ".join(f"{name} {value:.4f}" for name, value in metrics.items() if "accuracy" in name)
    progress(f"trained over {len(parts.sites)} sites: {shown}")
    return Result(
        metrics=metrics, label_names=tuple(parts.label_names), confusion=classes.matrix, roc=classes.roc
    )


def _links(job: GeoJob) -> dict[str, Links]:
    found = {}
    for site in job.tree.topology.sites:
        for index in range(site.num_workers):
            path = job.folder(site.name) / f"links-{index}.json"
            document = json.loads(path.read_text(encoding="utf-8"))
            found.update({name: Links(**counts) for name, counts in document.items()})
    return found


def _alone_accuracies(alone: Mapping[str, Alone]) -> dict[str, float]:
    """Returns the test accuracy of each site alone by metric; none without test nodes.

    Sites whose names differ in `-` and `_` only keep them as they are, so that each has a metric of its own.
    """
    plain = Counter(name.replace("-", "_") for name in alone)
    shown = {name: name.replace("-", "_") for name in alone}
    named = {name if plain[text] > 1 else text: alone[name] for name, text in shown.items()}
    return {
        f"alone_test_accuracy_{name}": one.test_accuracy
        for name, one in named.items()
        if one.test_accuracy is not None
    }


def _alone(job: GeoJob) -> dict[str, Alone]:
    if not job.config.compares(len(job.tree.workers)):
        return {}
    paths = {site.name: job.folder(site.name) / "alone-0.json" for site in job.tree.topology.sites}
    return {name: Alone(**json.loads(path.read_text(encoding="utf-8"))) for name, path in paths.items()}
