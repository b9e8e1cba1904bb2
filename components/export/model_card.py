"""The model card of a GNN: what a stranger needs to know to run the model and to judge it.

Knows nothing of how the files were written or compared.
"""

from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

from .._files import sha256
from ..training.trained_gnn import TrainedGnn
from .config import ExportConfig
from .verify import Agreement

_LAYERS_ONLY = ("sage", "gat")
"""Architectures that look at no degree of the outermost nodes."""
_PACKAGES = ("geokfp", "torch", "dgl", "onnx", "onnxruntime", "numpy")


def model_card(
    trained: TrainedGnn,
    config: ExportConfig,
    files: Mapping[str, tuple[Path, Agreement]],
    not_exported: Mapping[str, str],
    checked: Mapping[str, Any],
) -> dict[str, Any]:
    """Returns the card, as JSON.

    Args:
        trained: the trained model.
        config: the options of the export.
        files: each format's file, and how it compares.
        not_exported: why formats that were asked for are not there.
        checked: facts of the graphs that the comparison ran on.
    """
    source = trained.source
    return {
        "task": "node classification",
        "architecture": source.architecture or "user's own",
        "entry_point": source.entry_point,
        "options": {"num_layers": source.num_layers, **source.options},
        "inputs": _inputs(trained),
        "outputs": {
            "logits": {
                "type": "float32",
                "shape": ["num_nodes", source.num_classes],
                "columns": list(trained.label_names),
                "meaning": "one row a node; softmax gives probabilities, the largest is the class",
            }
        },
        "neighbourhood_hops": neighbourhood_hops(trained),
        "metrics": dict(trained.metrics),
        "data": {"fingerprint": trained.fingerprint},
        "files": {name: file_entry(path, agreement) for name, (path, agreement) in files.items()},
        "not_exported": dict(not_exported),
        "verification": {**checked, **verification(config, files)},
        "versions": {name: version(name) for name in _PACKAGES},
    }


def neighbourhood_hops(trained: TrainedGnn) -> int:
    """Returns the hops of in-neighbours that give a node the logits that it has in the whole graph.

    One a layer; one more where the degrees of the outermost nodes count, or may count.
    """
    source = trained.source
    return source.num_layers + (0 if source.architecture in _LAYERS_ONLY else 1)


def _inputs(trained: TrainedGnn) -> dict[str, Any]:
    return {
        "x": {
            "type": "float32",
            "shape": ["num_nodes", trained.source.num_features],
            "columns": list(trained.feature_names),
            "meaning": "one row of features a node, in the order of the columns trained on",
        },
        "edge_index": {
            "type": "int64",
            "shape": [2, "num_edges"],
            "meaning": "row 0 the sources, row 1 the destinations, as rows of x; an undirected edge "
            "is given in both directions, self-loops are not added",
        },
    }


def verification(config: ExportConfig, files: Mapping[str, tuple[Path, Agreement]]) -> dict[str, Any]:
    """Returns what a card says of the comparison of all files, beside what it ran on.

    Args:
        config: the options of the export.
        files: each format's file, and how it compares.
    """
    return {
        "tolerance": config.tolerance,
        "max_abs_difference": max(agreement.largest for _, agreement in files.values()),
    }


def file_entry(path: Path, agreement: Agreement) -> dict[str, Any]:
    """Returns what a card says of a file.

    Args:
        path: the file.
        agreement: how it compares with the trained model.
    """
    labels = {} if agreement.same_labels is None else {"same_labels": agreement.same_labels}
    return {
        "file": path.name,
        "bytes": path.stat().st_size,
        "sha256": sha256(path),
        "max_abs_difference": agreement.largest,
        **labels,
    }
