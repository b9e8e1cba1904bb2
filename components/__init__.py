"""Kubeflow Pipelines components for graph learning beyond one machine and one data centre.

The component functions are loaded when first asked for: importing a stage's engine
(`geokfp.components.training`, ...) must never load kfp, which costs a second a process.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .export.component import export_model
    from .geo_training.component import geo_train_gnn, partition_at_sites, shard_at_sites
    from .ingest.component import ingest_graph
    from .partition.component import partition_graph
    from .promotion.component import evaluate_challenger, open_window, promote_model
    from .shard.component import shard_table
    from .table_training.component import geo_train
    from .training.component import train_gnn

_STAGE_OF = {
    "ingest_graph": "ingest",
    "shard_table": "shard",
    "partition_graph": "partition",
    "train_gnn": "training",
    "geo_train_gnn": "geo_training",
    "partition_at_sites": "geo_training",
    "shard_at_sites": "geo_training",
    "geo_train": "table_training",
    "export_model": "export",
    "open_window": "promotion",
    "evaluate_challenger": "promotion",
    "promote_model": "promotion",
}

__all__ = [
    "evaluate_challenger",
    "export_model",
    "geo_train",
    "geo_train_gnn",
    "ingest_graph",
    "open_window",
    "partition_at_sites",
    "partition_graph",
    "promote_model",
    "shard_at_sites",
    "shard_table",
    "train_gnn",
]


def __getattr__(name: str) -> Any:
    if name not in _STAGE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_STAGE_OF[name]}.component", __name__), name)


def __dir__() -> list[str]:
    return sorted(__all__)
