"""What a system is: which processes run where in one trial."""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ..processes import Process
from ..worker_job import Exchange, WorkerJob

CONTROL = "alone"
"""Name of the control, in which no site knows of another."""
BENCHMARKS = Path(__file__).parents[2]
"""Folder from which processes import `wan_rig`."""
PYTHON_ENVIRONMENT = {"PYTHONPATH": str(BENCHMARKS), "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
"""Of every process: one thread, as there are more processes than cores."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Setting:
    """What is the same for all systems, and the learning rate of this trial."""

    folder: Path
    """The trial's own folder; processes may write below."""
    data: Path
    """Folder of the images."""
    addresses: Mapping[str, str]
    """IPv4 address of each endpoint."""
    sites: tuple[str, ...]
    """Names of the sites."""
    workers: int
    """Workers of each site."""
    split: str
    """How the sites differ."""
    batch: int
    """Images of one worker's step."""
    learning_rate: float
    """Of Adam."""
    seed: int
    """Of the initial weights and the order of images."""
    steps: int
    """Batches after which workers end by themselves."""
    every: int
    """Steps between two snapshots."""
    slow_sites: Mapping[str, float] = field(default_factory=dict)
    """Whose workers sleep after each step, and how many times as long as it took."""

    @property
    def records(self) -> Path:
        """Folder of the records, one folder a site."""
        return self.folder / "records"


@dataclass(frozen=True, kw_only=True, slots=True)
class System:
    """A way to train at several sites."""

    says: str
    """One line."""
    plan: Callable[[Setting], tuple[Process, ...]]
    """Says what to start; called once a trial, before anything runs. May write files below the folder."""
    shaped: bool = True
    """Whether it runs over the shaped links."""
    judged: Callable[[list[float]], float] = min
    """Which of the sites' accuracies counts: by default all sites must reach the target."""
    one_process: bool = False
    """Whether one process trains for all sites: it leaves its records as the first of them."""

    def recording(self, sites: Sequence[str]) -> tuple[str, ...]:
        """Returns those of the sites that leave records."""
        return tuple(sites[:1] if self.one_process else sites)


def worker_at(
    setting: Setting, site: int, worker: int, exchange: Exchange, environment: Mapping[str, str]
) -> Process:
    """Returns one worker, after writing its job; the first of each site leaves the records.

    Args:
        setting: the trial's.
        site: number of the site.
        worker: number of the worker in its site.
        exchange: what it trains through.
        environment: variables that the exchange reads.
    """
    name = f"{setting.sites[site]}-worker-{worker}"
    path = setting.folder / f"{name}.json"
    WorkerJob(
        data=str(setting.data),
        split=setting.split,
        site=(site, len(setting.sites)),
        worker=(worker, setting.workers),
        batch=setting.batch,
        learning_rate=setting.learning_rate,
        seed=setting.seed,
        steps=setting.steps,
        every=setting.every,
        records="" if worker else str(setting.records / setting.sites[site]),
        exchange=exchange,
        slow_factor=setting.slow_sites.get(setting.sites[site], 0.0),
    ).write(path)
    return Process(
        name=name,
        endpoint=setting.sites[site],
        command=(sys.executable, "-m", "wan_rig.worker", str(path)),
        environment={**PYTHON_ENVIRONMENT, **environment},
        finishes=True,
    )
