"""A graph that DGL saved: edges, and node data where it holds them."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._files import InputError, local_file
from .graph import TEST, TRAIN, VALIDATION, Array

_FEATURES = ("features", "feat", "x")
_LABELS = ("labels", "label", "y")
_MASKS = (
    ("train_mask", TRAIN),
    ("val_mask", VALIDATION),
    ("validation_mask", VALIDATION),
    ("test_mask", TEST),
)


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class DglGraph:
    """What a DGL graph file holds."""

    edges: Array
    """int64 [2, e]."""
    num_nodes: int
    """Number of nodes."""
    features: Array | None
    """float32 [n, F], from node data named features, feat or x."""
    labels: Array | None
    """int64 [n], from node data named labels, label or y."""
    split: Array | None
    """int8 [n], from train_mask, val_mask (validation_mask) and test_mask."""


def read_dgl_graph(uri: str) -> DglGraph:
    """Reads the first graph of a file written by `dgl.save_graphs`.

    Raises:
        InputError: not such a file, or a graph with several kinds of nodes or edges.
    """
    import dgl

    with local_file(uri) as path:
        try:
            graphs, _ = dgl.load_graphs(str(path))
        except dgl.DGLError as error:
            raise InputError(f"{uri}: not a DGL graph file ({str(error).splitlines()[0]})") from error
    graph = graphs[0]
    if len(graph.ntypes) > 1 or len(graph.etypes) > 1:
        raise InputError(f"{uri}: {len(graph.ntypes)} kinds of nodes; one kind is needed")
    source, destination = graph.edges()
    return DglGraph(
        edges=np.stack([source.numpy(), destination.numpy()]).astype(np.int64),
        num_nodes=graph.num_nodes(),
        features=_first(graph, _FEATURES, np.float32),
        labels=_first(graph, _LABELS, np.int64),
        split=_split(graph),
    )


def _first(graph: Any, names: tuple[str, ...], dtype: Any) -> Array | None:
    for name in names:
        if name in graph.ndata:
            found: Array = graph.ndata[name].numpy().astype(dtype)
            return found
    return None


def _split(graph: Any) -> Array | None:
    if "train_mask" not in graph.ndata:
        return None
    split = np.zeros(graph.num_nodes(), dtype=np.int8)
    for name, code in _MASKS:
        if name in graph.ndata:
            split[graph.ndata[name].numpy().astype(bool)] = code
    return split
