"""What a worker is given, on its way to it; loads no framework."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

JOINED = ""
"""Name of the exchange of one process that trains on the batches of all workers, joined."""
TREE = "geokfp"
"""Name of the exchange through a tree of aggregators."""
DDP = "ddp"
"""Name of the exchange by torch's DistributedDataParallel."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Exchange:
    """What a worker trains with, and what joins it to the others."""

    framework: str = "gluon"
    """One of `worker.FRAMEWORKS`."""
    name: str
    """`JOINED`, or with gluon what `mxnet.kv.create` takes, with torch `TREE` or `DDP`."""
    plugin: str = ""
    """Module that registers gluon's store; empty for MXNet's own."""
    compression: Mapping[str, Any] = field(default_factory=dict)
    """What `gluon.Trainer` takes as compression_params."""
    num_workers: int
    """Workers over all whose images a step's gradient is the mean."""
    counts: bool = True
    """Whether what the first worker of a site counts are all bytes of the site."""


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkerJob:
    """What one worker is given."""

    data: str
    """Folder of the images."""
    split: str
    """How the sites differ, one of `mnist.SPLITS`."""
    site: tuple[int, int]
    """Number of its site, and of how many."""
    worker: tuple[int, int]
    """Number of the worker in its site, and of how many."""
    batch: int
    """Images a step."""
    learning_rate: float
    """Of Adam."""
    seed: int
    """Of the initial weights and the order of images."""
    steps: int
    """Batches to train on."""
    every: int
    """Steps between two snapshots."""
    records: str
    """Folder of the site's records; empty for a worker that leaves none."""
    exchange: Exchange
    """What it trains through."""
    slow_factor: float = 0.0
    """Seconds that it sleeps for each second of a step's computing."""

    def write(self, path: Path) -> None:
        """Writes the job for a worker to read."""
        path.write_text(json.dumps(asdict(self), indent=1), encoding="utf-8")

    @classmethod
    def read(cls, path: Path) -> "WorkerJob":
        """Reads what `write` wrote."""
        document = json.loads(path.read_text(encoding="utf-8"))
        pairs = {name: tuple(document[name]) for name in ("site", "worker")}
        return cls(**{**document, **pairs, "exchange": Exchange(**document["exchange"])})
