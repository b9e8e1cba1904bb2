"""What the component `train_gnn` does.

Plans the processes of one site, runs them, writes model, predictions and report.
"""

import json
import shutil
import uuid
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from .._files import sha256
from .._files.checkpoints import digest, forget, usable_folder
from .._launch import Job, free_ports, progress, run_job
from .._launch.launch_step import Surroundings
from ..partition.partitions import Partitions, SitePartitions, read_partitions
from .checkpoint import last_epoch, training_digest
from .config import TrainingConfig
from .outcome import (
    Outcome,
    Roc,
    accuracies,
    confusion,
    judged_split,
    read_outcome,
    roc,
    write_predictions,
)
from .pod_plan import checkpoints_of, chosen_site
from .pod_step import train_in_pods
from .shared_memory import check_shared_memory
from .site import shared_memory_prefix, site_roles
from .summary import write_report
from .trained_gnn import ModelSource, TrainedGnn, write_trained_gnn
from .user_code import fetch_user_code
from .warm_start import check_start, fetch_trained_gnn
from .work_folder import work_folder
from .worker import BEST, HISTORY, TRAINER, WorkerJob


@dataclass(frozen=True, kw_only=True)
class Outputs:
    """Where the step's artifacts go."""

    model: Path
    """Folder of the trained GNN."""
    predictions: Path
    """Folder of the predictions."""
    report: Path
    """The HTML report."""


@dataclass(frozen=True, kw_only=True)
class Result:
    """What a training gave, for the component to log."""

    metrics: dict[str, float]
    """Finite values by name."""
    label_names: tuple[str, ...]
    """Name of each class."""
    confusion: npt.NDArray[np.int64]
    """Nodes of each class (row) by predicted class (column)."""
    roc: Roc | None
    """ROC curve of the same nodes."""


def run(
    config: TrainingConfig, partitions: Path, outputs: Outputs, surroundings: Surroundings | None = None
) -> Result:
    """Trains a GNN on the partitions of one site.

    Args:
        config: how to train, and where.
        partitions: a partitions artifact; `config.site` chooses when it has several sites.
        outputs: where to write.
        surroundings: what pods are started with, by any launcher but `local`.

    Raises:
        InputError: an input or option that is wrong, or too little shared memory.
        ProcessFailed: a trainer or server failed; `<model>-work/logs` keeps what all of them printed.
    """
    surroundings = surroundings or Surroundings()
    config = surroundings.in_run(config)
    with work_folder(outputs.model) as work:
        parts = read_partitions(partitions)
        site = chosen_site(parts, config.site)
        if not config.launches_pods:
            check_shared_memory([site], config.num_samplers)
        start = _start(config, parts, work)
        if start is not None:
            config = replace(config, num_layers=start.source.num_layers)
        source = model_source(config, parts, work) if start is None else start.source
        beside = outputs.model.with_name(f"{outputs.model.name}-checkpoints")
        kept = checkpoints_of(config) if config.launches_pods else Path(config.checkpoint_folder or beside)
        job = WorkerJob(
            config=config,
            source=source,
            work=work,
            checkpoints=usable_folder(kept).absolute() / _digest(config, source, start, partitions)
            if kept
            else None,
            start=None if start is None else start.weights,
        )
        if config.launches_pods:
            given = train_in_pods(job, site, partitions, surroundings)
        else:
            given = False
            _train(job, site)
        ids = None if given else site.node_ids()  # pods have written the predictions with them
        outcome = read_outcome(work, site=site.name, num_parts=site.num_parts, node_ids=ids)
        result = _write(config, parts, source, [outcome], work, outputs)
        if not given:
            write_predictions(outputs.predictions, [outcome], parts.label_names)
    if job.checkpoints is not None:
        forget(job.checkpoints)
    shutil.rmtree(beside, ignore_errors=True)
    if not config.launches_pods:
        surroundings.tell_created([])
    return result


def model_source(config: TrainingConfig, parts: Partitions, work: Path) -> ModelSource:
    """Returns how the model is built, with the user's code fetched into the work folder.

    Raises:
        InputError: the user's code is not there or builds no model, or the options do not fit it.
    """
    user_code = None
    if config.user_code:
        user_code = work / "user_code"
        fetch_user_code(config.user_code, user_code)
    source = ModelSource(
        architecture="" if config.entry_point else config.architecture,
        entry_point=config.entry_point,
        options=config.build_options,
        num_features=parts.num_features,
        num_classes=parts.num_classes,
        num_layers=config.num_layers,
        user_code=user_code,
    )
    source.build()  # a wrong option, and code that cannot be used, show here, before any process has started
    return source


def _start(config: TrainingConfig, parts: Partitions, work: Path) -> TrainedGnn | None:
    if not config.warm_start:
        return None
    start = fetch_trained_gnn(config.warm_start, work / "warm_start")
    check_start(start, parts, f"warm_start {config.warm_start!r}")
    progress(f"starts from a trained model: {start.source.entry_point or start.source.architecture}")
    return start


def _digest(config: TrainingConfig, source: ModelSource, start: TrainedGnn | None, partitions: Path) -> str:
    of_training = training_digest(config, source, partitions)
    if start is None:
        return of_training
    return digest({"start": sha256(start.weights)}, None, {"of": of_training})


def _train(job: WorkerJob, site: SitePartitions) -> None:
    checkpoints = job.checkpoints
    assert checkpoints is not None
    run_id = uuid.uuid4().hex[:8]
    resume_epoch = last_epoch(checkpoints, site.num_parts)
    job = replace(job, port=free_ports(1)[0], resume_epoch=resume_epoch)
    roles = site_roles(
        site,
        trainer=TRAINER,
        arguments=(str(job.write()),),
        work=job.work,
        run_id=run_id,
        num_samplers=job.config.num_samplers,
    )
    progress(f"{site.name}: {site.num_parts} trainers and {site.num_parts} DGL servers")
    if resume_epoch:
        progress(f"resumes after epoch {resume_epoch}, from the checkpoint in {checkpoints}")
    elif any(checkpoints.parent.iterdir()):
        progress(f"begins afresh: {checkpoints.parent} holds no whole checkpoint of these options and data")
    run_job(
        Job(
            name="train_gnn",
            roles=roles,
            deadline_s=float(job.config.timeout_s),
            shared_memory_prefixes=(shared_memory_prefix(run_id),),
        ),
        log_folder=job.work / "logs",
    )


def _write(
    config: TrainingConfig,
    parts: Partitions,
    source: ModelSource,
    outcomes: list[Outcome],
    work: Path,
    outputs: Outputs,
) -> Result:
    history: dict[str, Any] = json.loads((work / HISTORY).read_text(encoding="utf-8"))
    rows = history["rows"]
    metrics = {
        **accuracies(outcomes),
        "epochs_run": float(len(rows)),
        "best_epoch": float(history["best_epoch"]),
        "seconds_per_epoch": float(np.mean([row["seconds"] for row in rows])),
    }
    schema = {
        "label_names": list(parts.label_names),
        "feature_names": list(parts.feature_names),
        "fingerprint": parts.fingerprint,
    }
    write_trained_gnn(
        outputs.model, source=source, weights=work / BEST, schema=schema, metrics=metrics, history=rows
    )
    split = judged_split(outcomes)
    matrix = confusion(outcomes, parts.num_classes, split)
    curve = roc(outcomes, parts.num_classes, split)
    facts = {"model": source.entry_point or source.architecture, "seed": config.seed, **metrics}
    write_report(
        outputs.report,
        facts=facts,
        history=rows,
        matrix=matrix,
        label_names=parts.label_names,
        judged=(split, curve),
    )
    shown = "  ".join(f"{name} {value:.4f}" for name, value in metrics.items() if "accuracy" in name)
    progress(f"trained: {shown}")
    return Result(metrics=metrics, label_names=tuple(parts.label_names), confusion=matrix, roc=curve)
