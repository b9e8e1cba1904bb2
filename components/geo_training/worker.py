"""One trainer of `geo_train_gnn`: trains with all sites, then its site alone, and leaves what came of it.

The same process does both, one after the other, over the same partitions; only the scope of the rounds
differs.
"""

import threading
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import torch
from torch import nn

from .._launch import progress
from ..training.config import TrainingConfig
from ..training.epochs import EpochRow
from ..training.evaluate import infer
from ..training.loop import Hooks, fit
from ..training.models import Stack
from ..training.site_view import SiteView, open_site
from ..training.trained_gnn import load_weights
from ..training.worker import BEST, save_best, show_epoch, write_history, write_outcome
from .checkpoints.gnn_checkpoints import GeoCheckpoints
from .checkpoints.worker_checkpoints import Pace, WorkerShelf
from .frameworks.exchange import GeoExchange
from .job import GeoJob, write_json
from .links.client import Client
from .metrics.watch import recorder_of, watch_worker
from .server import dial, end_process
from .synchronization import synchronization
from .transport.base import Traffic
from .wire.units import SITE, TREE
from .workers.pace import agreed_slices
from .workers.plane import Members, Plane


def main(arguments: list[str]) -> None:
    """Trains as one of a site's trainers.

    Args:
        arguments: the `SitePlace` of this trainer and the path of `geo-job.json`.
    """
    threading.excepthook = end_process
    job = GeoJob.read(Path(arguments[1]))
    # DGL forks its samplers here: the client's thread and sockets must come after.
    site = open_site(arguments[0], job.config.training, allow_sparse=isinstance(_model(job), Stack))
    worker = _Worker(job, site)
    worker.train_over_all_sites()
    if job.config.compares(len(job.tree.workers)):
        worker.train_alone()
    worker.close()


class _Worker:
    def __init__(self, job: GeoJob, site: SiteView) -> None:
        self._job = job
        self._site = site
        self._config: TrainingConfig = job.config.training
        self._here = job.tree.topology.site(site.place.site)
        self._name = self._here.workers[site.place.machine]
        self._client: Client = dial(job.tree, self._name, self._here.name, observer=recorder_of(job.tree))
        self._watched = watch_worker(job.tree, self._name, self._client)
        everybody = Members(workers=job.tree.topology.workers, name=self._name)
        self._slices = agreed_slices(job.tree, self._client, everybody)

    def train_over_all_sites(self) -> None:
        workers = self._job.tree.topology.workers
        exchange, first = self._exchange(workers, TREE), self._name == workers[0]
        model, work = _model(self._job), self._job.work
        hooks = Hooks(on_epoch=show_epoch, on_best=_saver(work)) if first else Hooks()
        before = self._links()
        checkpoints = GeoCheckpoints(self._shelf(workers), exchange, lambda: self._links_since(before))
        result = fit(self._site, model, self._config, exchange, hooks, checkpoints)
        links = {name: asdict(link) for name, link in checkpoints.all_traffic().items()}
        write_json(self._folder / f"links-{self._site.place.machine}.json", links)
        if self._watched is not None:
            self._watched.close()  # what each site does alone is not over the links
        if first:
            if not (work / BEST).exists():
                save_best(model, work)
            write_history(result.history, result.best_epoch, work)
            progress(f"all sites: best epoch {result.best_epoch} of {len(result.history)}")
        write_outcome(self._site, infer(self._site, model, self._job.source.num_layers), self._folder)

    def train_alone(self) -> None:
        model = _model(self._job)
        exchange = self._exchange(self._here.workers, SITE)
        result = fit(self._site, model, self._config, exchange)
        accuracy = self._judge_all(model)
        if exchange.index == 0:
            rows = [row.finite() for row in result.history]
            document = {"best_epoch": result.best_epoch, "rows": rows, "test_accuracy": accuracy}
            write_json(self._folder / "alone-0.json", document)
            judged = "no test node" if accuracy is None else f"{accuracy:.4f} on all sites' test nodes"
            progress(f"{self._here.name} alone: {len(rows)} epochs, {judged}")

    def close(self) -> None:
        self._client.close()
        self._site.close()

    @property
    def _folder(self) -> Path:
        return self._job.folder(self._here.name)

    def _exchange(self, workers: tuple[str, ...], scope: str, wait_s: float | None = None) -> GeoExchange:
        chosen = synchronization(self._job.tree.synchronization)
        members = Members(workers=workers, name=self._name, scope=scope, wait_s=wait_s)
        policy = chosen.worker(meets=True) if scope == TREE else chosen.worker_of_one_site()
        return GeoExchange(Plane(self._client, members, self._slices, len(self._job.tree.roots)), policy)

    def _shelf(self, workers: tuple[str, ...]) -> WorkerShelf:
        config, members = self._job.config, Members(workers=workers, name=self._name)
        plane = Plane(self._client, members, self._slices, len(self._job.tree.roots))
        return WorkerShelf(self._job.tree, plane, Pace(every=config.checkpoint_every, epochs=config.epochs))

    def _judge_all(self, own: nn.Module) -> float | None:
        """Has every site's model judged by all sites; returns the test accuracy of this site's, if any."""
        accuracy = None
        for judged in self._job.tree.topology.sites:
            # The first of `workers` gives the weights. Sites end their own training at very different times.
            others = tuple(w for w in self._job.tree.topology.workers if w not in judged.workers)
            exchange = self._exchange((*judged.workers, *others), TREE, float(self._config.timeout_s))
            model = own if judged == self._here else _model(self._job)
            exchange.broadcast(model)
            counts = exchange.sum(self._test_counts(model))
            if judged == self._here:
                accuracy = float(counts[0] / counts[1]) if counts[1] else None
        return accuracy

    def _test_counts(self, model: nn.Module) -> torch.Tensor:
        logits = infer(self._site, model, self._job.source.num_layers)
        mask = self._site.masks["test"]
        right = logits[mask].argmax(1) == self._site.labels[mask]
        return torch.tensor([float(right.sum()), float(mask.sum())], dtype=torch.float64)

    def _links(self) -> dict[str, Traffic]:
        """Returns the bytes so far of this worker's link, and of its site's link to the root by the first."""
        links = {}
        if self._name == self._here.workers[0]:
            links[self._here.name] = self._job.tree.of_roots(self._here.name, self._client.peer_traffic())
        return {**links, self._name: self._client.traffic}

    def _links_since(self, before: dict[str, Traffic]) -> dict[str, Traffic]:
        own = self._client.traffic  # before the question about the other link is counted
        after = {**self._links(), self._name: own}
        return {
            name: Traffic(
                after[name].sent_bytes - before[name].sent_bytes,
                after[name].received_bytes - before[name].received_bytes,
            )
            for name in after
        }


def _model(job: GeoJob) -> nn.Module:
    """Builds the model with the weights that every training of the run starts from."""
    torch.manual_seed(job.config.seed)
    model = job.source.build()
    if job.start is not None:
        load_weights(model, job.start)
    return model


def _saver(work: Path) -> Callable[[nn.Module, EpochRow], None]:
    return lambda model, _row: save_best(model, work)
