"""One worker of any system: trains the shared model on its images, and leaves records.

    python -m wan_rig.worker JOB.json

What the frameworks do in a way of their own is a `Learner`; the rest is here, once for all of them.
"""

import importlib
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

from . import mnist
from .mnist import Samples
from .records import Recorder
from .slow_site import slowed
from .worker_job import JOINED, WorkerJob

FRAMEWORKS: Mapping[str, str] = {"gluon": "gluon_learner", "torch": "torch_learner"}
"""Module by framework: its `join(job)` is a context that yields a `Learner` when all workers have the initial
weights and have come there. Imported by name, as no process loads two frameworks."""


class Learner(Protocol):
    """The model of one worker, joined to the others. Called by `train` only."""

    def compute(self, batch: Samples) -> None:
        """Computes the gradients of one batch; may return before that is done."""

    def step(self) -> None:
        """Takes a step with them, together with the other workers; may return before that is done."""

    def settle(self) -> None:
        """Returns when all that was begun is done."""

    def snapshot(self) -> tuple[Any, int | None]:
        """Returns the weights to judge, float32 [cnn.NUM_PARAMETERS], and the bytes that the system counted
        on the site's wide-area links so far, both ways; None where it counts none.
        """


def main(path: Path) -> None:
    """Trains as the job says."""
    job = WorkerJob.read(path)
    source = batches(job)
    framework = importlib.import_module(f".{FRAMEWORKS[job.exchange.framework]}", __package__)
    with framework.join(job) as learner:
        train(job, learner, source)


def train(job: WorkerJob, learner: Learner, source: Iterator[Samples]) -> None:
    """Trains from now on, and leaves records."""
    recorder = Recorder(Path(job.records)) if job.records else None

    def snapshot() -> tuple[Any, int | None]:
        weights, count = learner.snapshot()
        return weights, count if job.exchange.counts else None

    if recorder:
        recorder.start(snapshot)
    for step in range(1, job.steps + 1):
        # The first step sets the framework up, which is not to be paid several times.
        with slowed(job.slow_factor if step > 1 else 0.0, learner.settle):
            learner.compute(next(source))
        learner.step()
        if step % job.every == 0:
            learner.settle()  # all workers do, or some would run ahead of the snapshots
            if recorder:
                recorder.save(step, snapshot)


def batches(job: WorkerJob) -> Iterator[Samples]:
    """Yields the job's batches for ever; those of one process are the batches of all workers, joined."""
    everything, _ = mnist.read(Path(job.data))
    (site, sites), (worker, workers) = job.site, job.worker
    numbers = [site * workers + worker] if job.exchange.name != JOINED else range(sites * workers)
    sources = [_batches_of(number, job, everything) for number in numbers]
    return (Samples.joined(parts) for parts in zip(*sources, strict=True))


def _batches_of(number: int, job: WorkerJob, everything: Samples) -> Iterator[Samples]:
    """Yields the batches of one worker, which are the same in whatever process they train."""
    (_, sites), (_, workers) = job.site, job.worker
    site, worker = divmod(number, workers)
    own = mnist.share(everything.labels, job.split, (site, sites), (worker, workers))
    return mnist.batches(everything.of(own), job.batch, seed=1000 * job.seed + number)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
