"""One file that holds a whole graph: a graph that DGL saved, or an `.npz` with `edge_index`.

Knows nothing of tables: nodes are numbered from 0.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._files import InputError, local_file, suffix
from .config import DGL_SUFFIXES, IngestConfig
from .edges import edge_index
from .features import as_float32
from .graph import TEST, TRAIN, VALIDATION, Array
from .tables import load_npz

_FEATURES = ("features", "feat", "x")
_LABELS = ("labels", "label", "y")
_MASKS = (
    ("train_mask", TRAIN),
    ("val_mask", VALIDATION),
    ("validation_mask", VALIDATION),
    ("test_mask", TEST),
)


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class WholeGraph:
    """What the file holds."""

    edges: Array
    """int64 [2, e]."""
    num_nodes: int
    """Number of nodes."""
    features: Array | None
    """float32 [n, F], from node data named features, feat or x."""
    labels: Array | None
    """int64 or unicode [n], from node data named labels, label or y; below 0 or empty = none."""
    split: Array | None
    """int8 [n], from train_mask, val_mask (validation_mask) and test_mask."""


def whole_graph_uri(config: IngestConfig) -> str:
    """Returns the URI of the file that holds a whole graph, or '' when the options name tables."""
    for whole in (config.edges, config.nodes):
        if suffix(whole) in DGL_SUFFIXES:
            return whole
    uri = config.edges or config.nodes
    single = config.nodes in ("", uri) and suffix(uri) == ".npz"
    return uri if single and edge_index(uri, load_npz(uri)) is not None else ""


def read_whole_graph(uri: str) -> WholeGraph:
    """Reads the first graph of a file written by `dgl.save_graphs`, or an `.npz` with `edge_index` [2, e].

    Raises:
        InputError: not such a file, several kinds of nodes or edges, or node data of the wrong shape.
    """
    if suffix(uri) == ".npz":
        arrays: Mapping[str, Array] = load_npz(uri)
        edges = edge_index(uri, arrays)
        assert edges is not None
        if edges.dtype.kind not in "iu":
            raise InputError(f"{uri}: edge_index has type {edges.dtype}; whole numbers are needed")
        sized = [len(arrays[name]) for name in (*_LABELS, *_FEATURES) if name in arrays and arrays[name].ndim]
        num_nodes = sized[0] if sized else int(edges.max(initial=-1)) + 1
    else:
        edges, arrays, num_nodes = _read_dgl(uri)
    if edges.size and not 0 <= edges.min() <= edges.max() < num_nodes:
        wrong = int(np.flatnonzero(((edges < 0) | (edges >= num_nodes)).any(axis=0))[0])
        raise InputError(
            f"{uri}: edge {wrong} joins {edges[:, wrong].tolist()} but there are {num_nodes} nodes"
        )
    return WholeGraph(
        edges=edges.astype(np.int64, copy=False),
        num_nodes=num_nodes,
        features=_features(uri, arrays, num_nodes),
        labels=_labels(uri, arrays, num_nodes),
        split=_split(uri, arrays, num_nodes),
    )


def _read_dgl(uri: str) -> tuple[Array, Mapping[str, Array], int]:
    import dgl

    with local_file(uri) as path:
        try:
            graphs, _ = dgl.load_graphs(str(path))
        except dgl.DGLError as error:
            raise InputError(f"{uri}: not a file that dgl.save_graphs wrote, or not a whole one") from error
    if not graphs:
        raise InputError(f"{uri}: holds no graph; one is needed")
    graph = graphs[0]
    if len(graph.ntypes) > 1 or len(graph.etypes) > 1:
        raise InputError(
            f"{uri}: {len(graph.ntypes)} kinds of nodes and {len(graph.etypes)} of edges; "
            "one of each is needed"
        )
    pairs = np.stack([end.numpy() for end in graph.edges()])
    return pairs, {name: data.numpy() for name, data in graph.ndata.items()}, graph.num_nodes()


def _features(uri: str, arrays: Mapping[str, Array], num_nodes: int) -> Any:
    name = _present(arrays, _FEATURES)
    if name is None:
        return None
    found = arrays[name]
    if found.dtype.kind not in "fiub":
        raise InputError(f"{uri}: {name} has type {found.dtype}; numbers are needed")
    if found.ndim == 1:
        found = found[:, np.newaxis]
    _check_shape(uri, name, found, num_nodes, 2)
    return as_float32(found, f"{uri}: {name}")


def _labels(uri: str, arrays: Mapping[str, Array], num_nodes: int) -> Array | None:
    name = _present(arrays, _LABELS)
    if name is None:
        return None
    found = arrays[name]
    if found.ndim == 2 and found.shape[1] == 1:
        found = found[:, 0]
    _check_shape(uri, name, found, num_nodes, 1)
    if found.dtype.kind == "U":
        return found
    numbers = np.nan_to_num(found, nan=-1) if found.dtype.kind == "f" else found
    whole = numbers.astype(np.int64) if found.dtype.kind in "fiub" else None
    if whole is None or not np.array_equal(whole, numbers):
        raise InputError(f"{uri}: {name} has type {found.dtype}; whole numbers or strings are needed")
    return whole


def _split(uri: str, arrays: Mapping[str, Array], num_nodes: int) -> Array | None:
    if "train_mask" not in arrays:
        return None
    split = np.zeros(num_nodes, dtype=np.int8)
    for name, code in _MASKS:
        if name in arrays:
            _check_shape(uri, name, arrays[name], num_nodes, 1)
            split[arrays[name].astype(bool)] = code
    return split


def _present(arrays: Mapping[str, Array], names: tuple[str, ...]) -> str | None:
    return next((name for name in names if name in arrays), None)


def _check_shape(uri: str, name: str, array: Array, num_nodes: int, dimensions: int) -> None:
    if array.ndim != dimensions or len(array) != num_nodes:
        needed = [num_nodes] if dimensions == 1 else [num_nodes, "features"]
        shown = ", ".join(str(each) for each in needed)
        raise InputError(f"{uri}: {name} has shape {list(array.shape)}; [{shown}] is needed")
