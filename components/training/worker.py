"""One trainer of `train_gnn`: joins its site and the other trainers, trains, infers, leaves its outcome.

The work folder holds, when all trainers have ended::

    job.json               what the trainers are given
    best.safetensors       weights of the best epoch so far (worker 0, replaced whole)
    history.json           one row an epoch (worker 0)
    outcome-0.npz ...      logits, labels and split of each part's own nodes, in the order of DGL's ids

Checkpoints lie in a folder of their own (`checkpoint`).
"""

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from .._files import new_file
from .._launch import progress
from .checkpoint import WorkerCheckpoints
from .config import TrainingConfig
from .epochs import EpochRow
from .evaluate import infer
from .exchange import Exchange, TorchExchange
from .loop import Hooks, fit
from .models import Stack
from .site_view import SiteView, open_site
from .trained_gnn import ModelSource, load_weights, save_weights

TRAINER = "geokfp.components.training.worker:main"
JOB = "job.json"
BEST = "best.safetensors"
HISTORY = "history.json"
COLLECTIVE_TIMEOUT_S = 600.0
"""How long one trainer waits for another in a collective before it fails; far above the time of one step."""
SPLITS = ("none", "train", "validation", "test")
"""Meaning of the split codes in `outcome-*.npz`."""


@dataclass(frozen=True, kw_only=True)
class WorkerJob:
    """What every trainer of a run is given, through `job.json`."""

    config: TrainingConfig
    """How to train."""
    source: ModelSource
    """How to build the model."""
    work: Path
    """The work folder."""
    address: str = "127.0.0.1"
    """IPv4 address of worker 0."""
    port: int = 0
    """Port of worker 0 for torch.distributed."""
    checkpoints: Path | None
    """The training's folder of checkpoints; None keeps none."""
    resume_epoch: int = 0
    """The epoch whose checkpoint to go on from; 0 begins afresh."""
    start: Path | None = None
    """Weights to start from, as safetensors; None for fresh ones."""

    def write(self) -> Path:
        """Writes `job.json` and returns its path."""
        source = {name: getattr(self.source, name) for name in _names(ModelSource)}
        source["user_code"] = str(self.source.user_code) if self.source.user_code else ""
        config = asdict(self.config)
        document = {
            "config": config,
            "source": source,
            "work": str(self.work),
            "address": self.address,
            "port": self.port,
            "checkpoints": str(self.checkpoints) if self.checkpoints else "",
            "resume_epoch": self.resume_epoch,
            "start": str(self.start) if self.start else "",
        }
        path = self.work / JOB
        with new_file(path) as temporary:
            temporary.write_text(json.dumps(document, indent=1), encoding="utf-8")
        return path

    @classmethod
    def read(cls, path: Path) -> "WorkerJob":
        """Reads what `write` wrote."""
        document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        source = document["source"]
        source["user_code"] = Path(source["user_code"]) if source["user_code"] else None
        return cls(
            config=TrainingConfig(**document["config"]),
            source=ModelSource(**source),
            work=Path(document["work"]),
            address=document["address"],
            port=document["port"],
            checkpoints=Path(document["checkpoints"]) if document["checkpoints"] else None,
            resume_epoch=document["resume_epoch"],
            start=Path(document["start"]) if document["start"] else None,
        )


def main(arguments: list[str]) -> None:
    """Trains as one of the site's trainers.

    Args:
        arguments: the `SitePlace` of this trainer and the path of `job.json`.
    """
    job = WorkerJob.read(Path(arguments[1]))
    torch.manual_seed(job.config.seed)
    model = job.source.build()
    if job.start is not None:
        load_weights(model, job.start)
    site = open_site(arguments[0], job.config, allow_sparse=isinstance(model, Stack))
    exchange = TorchExchange(
        job.address,
        job.port,
        index=site.place.machine,
        size=site.place.num_machines,
        timeout_s=COLLECTIVE_TIMEOUT_S,
    )
    _train(site, model, job, exchange)
    write_outcome(site, infer(site, model, job.source.num_layers), job.work)
    exchange.close()
    site.close()


def _train(site: SiteView, model: nn.Module, job: WorkerJob, exchange: Exchange) -> None:
    first = exchange.index == 0
    hooks = (
        Hooks(on_epoch=show_epoch, on_best=lambda best, _row: save_best(best, job.work)) if first else Hooks()
    )
    checkpoints = (
        WorkerCheckpoints(job.checkpoints, exchange.index, job.resume_epoch) if job.checkpoints else None
    )
    result = fit(site, model, job.config, exchange, hooks, checkpoints)
    if first:
        if not (job.work / BEST).exists():
            save_best(model, job.work)
        write_history(result.history, result.best_epoch, job.work)
        progress(f"best epoch {result.best_epoch} of {len(result.history)}")


def show_epoch(row: EpochRow) -> None:
    """Prints one line about an epoch."""
    values: Mapping[str, float] = row.finite()
    shown = "  ".join(f"{name} {values[name]:.4f}" for name in _SHOWN if name in values)
    progress(f"epoch {row.epoch}  {shown}  {row.seconds:.2f} s")


_SHOWN = ("train_loss", "train_accuracy", "val_loss", "val_accuracy")


def save_best(model: nn.Module, work: Path) -> None:
    """Replaces `best.safetensors` as a whole."""
    with new_file(work / BEST) as temporary:
        save_weights(model, temporary)


def write_history(history: list[EpochRow], best_epoch: int, work: Path) -> None:
    """Writes `history.json`."""
    with new_file(work / HISTORY) as temporary:
        document = {"best_epoch": best_epoch, "rows": [row.finite() for row in history]}
        temporary.write_text(json.dumps(document, indent=1), encoding="utf-8")


def outcome_name(part: int) -> str:
    """Returns the name of the file that a part's trainer leaves its outcome in."""
    return f"outcome-{part}.npz"


def write_outcome(site: SiteView, logits: torch.Tensor, work: Path) -> None:
    """Writes `outcome-<machine>.npz`: logits, labels and split of the own part's nodes."""
    split = np.zeros(len(site.labels), dtype=np.int8)
    for code, name in enumerate(SPLITS[1:], start=1):
        split[site.masks[name].numpy()] = code
    with new_file(work / outcome_name(site.place.machine)) as temporary, open(temporary, "wb") as file:
        np.savez(file, logits=logits.numpy(), labels=site.labels.numpy(), split=split)
        file.flush()
        os.fsync(file.fileno())


def _names(cls: Any) -> list[str]:
    return [field.name for field in fields(cls)]
