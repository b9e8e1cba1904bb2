"""One worker of `geo_train`: trains on its rows together with all others, and leaves what came of it."""

import math
import os
import sys
import threading
import time
from dataclasses import asdict
from pathlib import Path

import numpy as np

from .._files import new_file
from .._launch import progress
from ..geo_training.checkpoints.state import STATE, State
from ..geo_training.checkpoints.worker_checkpoints import Pace, WorkerShelf
from ..geo_training.metrics.watch import recorder_of, watch_worker
from ..geo_training.server import dial, end_process
from ..geo_training.synchronization import synchronization
from ..geo_training.transport.base import Traffic
from ..geo_training.workers.pace import agreed_slices
from ..geo_training.workers.plane import Members, Plane
from ..ingest.graph import Array
from ..training.seeds import draw_seed, seed_everything
from . import totals
from .job import TOTALS, TableJob, write_json
from .learner import Judged, join
from .rows import WorkerRows, batches
from .source import MXNET

ROWS_AT_ONCE = 1024
"""Rows that are judged together."""


def main(arguments: list[str]) -> None:
    """Trains as one of a site's workers.

    Args:
        arguments: the worker's name in the tree and the path of `table-job.json`.

    Raises:
        GeoError: a round waited too long, or a node was lost.
        ArithmeticError: the training diverged.
    """
    threading.excepthook = end_process
    worker = _Worker(TableJob.read(Path(arguments[1])), arguments[0])
    worker.train()
    worker.judge_all()
    worker.close()


class _Worker:
    def __init__(self, job: TableJob, name: str) -> None:
        self._job, self._config = job, job.config
        self._here = job.tree.topology.site(name)
        self._number = self._here.workers.index(name)
        shard = job.site(self._here.name)
        self._rows = WorkerRows(shard, self._number, self._here.num_workers)
        observer = recorder_of(job.tree)
        self._client = dial(job.tree, name, self._here.name, observer=observer)
        self._watched = watch_worker(job.tree, name, self._client)
        members = Members(workers=job.tree.topology.workers, name=name)
        slices = agreed_slices(job.tree, self._client, members)
        self._plane = Plane(self._client, members, slices, len(job.tree.roots))
        seed_draws(self._config.seed)
        chosen = synchronization(job.tree.synchronization)
        policy = chosen.worker(piecewise=job.tree.is_overlapped)
        sample, _ = self._rows.take(self._rows.train[:1])
        self._learner = join(job.source.build(), self._plane, policy, sample)
        self._began = time.monotonic()
        self._history: list[dict[str, float]] = []
        self._epochs_before = 0
        self._links_before: dict[str, Traffic] = {}
        self._shelf = self._join_checkpoints(name)
        self._restore()

    def train(self) -> None:
        """Trains, and ends together with the others."""
        for epoch in range(self._epochs_before + 1, self._config.epochs + 1):
            what = (self._config.seed, self._plane.index, epoch)
            seed_draws(*what)
            loss = sum(
                self._learner.step(*self._rows.take(rows))
                for rows in batches(self._rows.train, self._config.batch_size, self._job.num_steps, *what)
            )
            judged = epoch % self._config.eval_every == 0 or epoch == self._config.epochs
            if judged and self._number == 0:
                self._judge_validation(epoch, loss / len(self._rows.train))
            if self._shelf.due(epoch):
                self._keep(epoch)
        self._learner.finish(self._job.weights if self._plane.index == 0 else None)
        self._seconds = time.monotonic() - self._began
        self._write_links()
        if self._number == 0:
            write_json(self._folder / "history-0.json", self._history)

    def judge_all(self) -> None:
        """Judges this worker's share of the site's rows, and adds to the sums over all sites."""
        judged, labels = self._judge(self._rows.judged)
        if not np.isfinite(judged.outputs).all():
            raise ArithmeticError(
                "the trained model gives values that are not finite; a smaller learning rate may help"
            )
        split = self._rows.split[self._rows.judged]
        by_task = totals.classification if self._job.source.num_classes else totals.regression
        metrics = by_task(judged, labels, split, self._plane.total)
        self._write_outcome(judged.outputs, labels)
        if self._plane.index == 0:
            write_json(self._job.work / TOTALS, {**metrics, "seconds": self._seconds})

    def close(self) -> None:
        """Leaves the tree."""
        if self._watched is not None:
            self._watched.close()
        self._plane.close()

    @property
    def _folder(self) -> Path:
        return self._job.folder(self._here.name)

    def _judge_validation(self, epoch: int, train_loss: float) -> None:
        row = {"epoch": float(epoch), "seconds": time.monotonic() - self._began, "train_loss": train_loss}
        if len(self._rows.validation):
            with self._learner.agreed():
                judged, labels = self._judge(self._rows.validation)
            row["val_loss"] = judged.loss / len(labels)
            row |= _quality(judged, labels, is_classification=bool(self._job.source.num_classes))
        row = {name: value for name, value in row.items() if math.isfinite(value)}
        self._history.append(row)
        shown = "  ".join(f"{name} {row[name]:.4f}" for name in row if name not in ("epoch", "seconds"))
        progress(f"epoch {epoch}  {shown}  {row['seconds']:.2f} s")

    def _judge(self, rows: Array) -> tuple[Judged, Array]:
        """Returns what the model says about some rows, and their labels."""
        pieces = np.array_split(rows, -(-len(rows) // ROWS_AT_ONCE))
        judged = [self._learner.judge(*self._rows.take(piece)) for piece in pieces]
        outputs = np.concatenate([each.outputs for each in judged])
        return Judged(outputs, sum(each.loss for each in judged)), self._rows.labels(rows)

    def _write_outcome(self, outputs: Array, labels: Array) -> None:
        path = self._folder / f"outcome-{self._number}.npz"
        rows = self._rows
        with new_file(path) as temporary, open(temporary, "wb") as file:
            np.savez(
                file,
                rows=rows.source_rows[rows.judged],
                split=rows.split[rows.judged],
                labels=labels,
                outputs=outputs,
            )
            file.flush()
            os.fsync(file.fileno())

    def _write_links(self) -> None:
        """Leaves the bytes of this worker's link, and of its site's link to the root by the site's first."""
        write_json(self._folder / f"links-{self._number}.json", self._links())

    def _links(self) -> dict[str, dict[str, int]]:
        links = {f"{self._here.name}/trainer-{self._number}": self._client.traffic}
        if self._number == 0:
            links[self._here.name] = self._job.tree.of_roots(self._here.name, self._client.peer_traffic())
        for name, link in links.items():
            link.add(self._links_before.get(name, Traffic()))
        return {name: asdict(link) for name, link in links.items()}

    def _join_checkpoints(self, name: str) -> WorkerShelf:
        # Sites of unequal speed end an epoch at very different times.
        members = Members(
            workers=self._job.tree.topology.workers, name=name, wait_s=float(self._config.timeout_s)
        )
        pace = Pace(every=self._config.checkpoint_every, epochs=self._config.epochs)
        plane = Plane(self._client, members, num_roots=len(self._job.tree.roots))
        return WorkerShelf(self._job.tree, plane, pace)

    def _keep(self, epoch: int) -> None:
        learner = self._learner.state()
        facts = {
            "epoch": epoch,
            "history": self._history,
            "links": self._links(),
            "links_before": {name: asdict(link) for name, link in self._links_before.items()},
            "seconds": time.monotonic() - self._began,
        }
        parts = {"learner": learner, "worker": State(facts=facts), "place": self._shelf.place()}
        with self._shelf.new(epoch) as folder:
            State.of(parts).write(folder / STATE)

    def _restore(self) -> None:
        if self._shelf.kept is None:
            return
        state = State.read(self._shelf.kept / STATE)
        self._learner.load_state(state.part("learner"))
        facts = state.part("worker").facts
        self._epochs_before, self._history = facts["epoch"], facts["history"]
        links, site = facts["links"], self._here.name
        self._began -= facts["seconds"]
        if self._shelf.take_place(state.part("place")) and self._job.tree.comes_back == "worker":
            links.pop(site, None)  # its node has lived on, and counts this run from its start
            links |= {name: link for name, link in facts["links_before"].items() if name == site}
        self._links_before = {name: Traffic(**link) for name, link in links.items()}


def seed_draws(*what: int) -> None:
    """Seeds every generator that a model may draw from, for what is named, such as (seed, worker, epoch)."""
    seed = draw_seed(*what)
    seed_everything(seed)
    mxnet = sys.modules.get(MXNET)
    if mxnet is not None:
        mxnet.random.seed(seed)


def _quality(judged: Judged, labels: Array, *, is_classification: bool) -> dict[str, float]:
    if is_classification:
        return {"val_accuracy": float((judged.outputs.argmax(axis=1) == labels).mean())}
    return {"val_rmse": float(np.sqrt(np.mean((judged.outputs[:, 0] - labels) ** 2)))}
