"""What a worker is given, on its way to it; loads no MXNet."""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True, kw_only=True, slots=True)
class GluonJob:
    """What one worker is given."""

    data: str
    """Folder of the images."""
    split: str
    """How the sites differ, one of `mnist.SPLITS`."""
    site: tuple[int, int]
    """Number of its site, and of how many."""
    worker: tuple[int, int]
    """Number of the worker in its site, and of how many."""
    num_workers: int
    """Workers whose gradients are added up."""
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
    waits: bool
    """Whether its snapshots are evaluated before it goes on."""
    store: str
    """Name of the key-value store."""
    plugin: str = ""
    """Module that registers it; empty for MXNet's own."""
    compression: dict[str, Any] = field(default_factory=dict)
    """What `gluon.Trainer` takes as compression_params."""

    def write(self, path: Path) -> None:
        """Writes the job for a worker to read."""
        path.write_text(json.dumps(asdict(self), indent=1), encoding="utf-8")

    @classmethod
    def read(cls, path: Path) -> "GluonJob":
        """Reads what `write` wrote."""
        document = json.loads(path.read_text(encoding="utf-8"))
        return cls(**{**document, "site": tuple(document["site"]), "worker": tuple(document["worker"])})
