"""Shards of small tables and images, made by the step that makes them."""

from pathlib import Path
from typing import Any

import numpy as np
from geokfp.components.shard.config import ShardConfig
from geokfp.components.shard.run import run as shard
from geokfp.components.table_training.run import Outputs


def sharded(folder: Path, **options: Any) -> Path:
    """Divides scikit-learn's digits, or what the options name, into shards; returns their folder."""
    folder.mkdir(parents=True, exist_ok=True)
    config = ShardConfig(**options)
    shard(config, shards=folder / "shards", report=folder / "report.html", fingerprint=folder / "fingerprint")
    return folder / "shards"


def arrays(folder: Path, x: np.ndarray, y: np.ndarray) -> str:
    """Writes rows as an `.npz` and returns its path."""
    folder.mkdir(parents=True, exist_ok=True)
    np.savez(folder / "rows.npz", x=x, y=y)
    return str(folder / "rows.npz")


def outputs_in(folder: Path) -> Outputs:
    return Outputs(model=folder / "model", predictions=folder / "predictions", report=folder / "report.html")
