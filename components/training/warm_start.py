"""Starting from a trained GNN in place of fresh weights."""

from pathlib import Path

from .._files import Folder, InputError
from ..partition.partitions import Partitions
from .trained_gnn import TrainedGnn, read_trained_gnn


def fetch_trained_gnn(uri: str, target: Path) -> TrainedGnn:
    """Copies a trained GNN from where a path or URI says, and reads it.

    Args:
        uri: its folder.
        target: the folder to write.

    Raises:
        ArtifactError: the folder is not a whole trained GNN.
        InputError: it cannot be read.
    """
    Folder(uri).fetch_artifact(target)
    return read_trained_gnn(target)


def check_start(start: TrainedGnn, parts: Partitions, option: str) -> None:
    """Checks that a training on these partitions can go on from a trained GNN.

    Args:
        start: the trained GNN.
        parts: what is trained on.
        option: the option that names it, to begin a complaint with.

    Raises:
        InputError: features or classes differ.
    """
    of_model, of_graph = start.source.num_features, parts.num_features
    if of_model != of_graph:
        raise InputError(f"{option}: the model takes {of_model} features, the partitions have {of_graph}")
    if start.label_names != parts.label_names:
        names = f"{list(start.label_names[:5])} ... and {list(parts.label_names[:5])} ..."
        raise InputError(f"{option}: the model's classes are not those of the partitions: {names}")
