"""The graph artifact: one labelled graph with node features, in plain arrays.

Drawing of the folder::

    graph/
      manifest.json   kind geokfp.graph, version 1: counts, names, fingerprint, checksums
      edges.npy       int64 [2, num_edges]: source row, destination row; both directions when undirected
      features.npy    float32 [num_nodes, num_features], or features.npz: scipy CSR of the same shape
      labels.npy      int64 [num_nodes], -1 = no label
      split.npy       int8 [num_nodes]: 0 none, 1 train, 2 validation, 3 test
      node_ids.npy    int64 or fixed-width unicode [num_nodes]: the user's ids
      sites.npy       int32 [num_nodes], index into site_names; only when the nodes carry a site

Knows nothing of tables, parts or models.
"""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from .._files import ArtifactError, new_directory, read_manifest, write_manifest

KIND = "geokfp.graph"
VERSION = 1
NO_SPLIT, TRAIN, VALIDATION, TEST = 0, 1, 2, 3

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True, kw_only=True, slots=True)
class GraphSchema:
    """What is known of a graph without reading its arrays."""

    num_nodes: int
    """Number of nodes."""
    num_edges: int
    """Number of directed edges stored."""
    num_features: int
    """Width of a node's feature row."""
    label_names: tuple[str, ...]
    """Name of each class, in the order of the labels."""
    feature_names: tuple[str, ...]
    """Name of each feature column; empty when the features came without names."""
    site_names: tuple[str, ...]
    """Name of each site; empty when the nodes carry none."""
    undirected: bool
    """Whether each edge is stored in both directions."""
    fingerprint: str
    """Hash of all contents."""
    warnings: tuple[str, ...]
    """What was repaired or dropped on the way in, one line each."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Graph:
    """A labelled graph in memory (or memory-mapped); shapes as in the module's drawing."""

    edges: Array
    """int64 [2, num_edges], source row and destination row."""
    features: Any
    """float32 [num_nodes, num_features], a numpy array or a scipy CSR matrix."""
    labels: Array
    """int64 [num_nodes], -1 = no label."""
    split: Array
    """int8 [num_nodes], one of NO_SPLIT, TRAIN, VALIDATION, TEST."""
    node_ids: Array
    """int64 or unicode [num_nodes], the user's ids."""
    label_names: tuple[str, ...]
    """Name of each class."""
    feature_names: tuple[str, ...] = ()
    """Name of each feature column, or empty."""
    undirected: bool = True
    """Whether each edge is stored in both directions."""
    site_names: tuple[str, ...] = ()
    """Name of each site, or empty."""
    sites: Array | None = None
    """int32 [num_nodes], index into site_names."""
    warnings: tuple[str, ...] = ()
    """What was repaired or dropped on the way in."""
    fingerprint: str = ""
    """Hash of all contents; known once the graph was written."""

    @property
    def num_nodes(self) -> int:
        """Number of nodes."""
        return len(self.labels)

    @property
    def num_edges(self) -> int:
        """Number of directed edges stored."""
        return int(self.edges.shape[1])

    @property
    def num_features(self) -> int:
        """Width of a node's feature row."""
        return int(self.features.shape[1])

    @property
    def num_classes(self) -> int:
        """Number of classes."""
        return len(self.label_names)

    def dense_features(self, rows: Array | slice = slice(None)) -> Array:
        """Returns float32 [len(rows), num_features], dense whatever the storage is."""
        chosen = self.features[rows]
        if scipy.sparse.issparse(chosen):
            chosen = chosen.toarray()
        return np.ascontiguousarray(chosen, dtype=np.float32)


def write_graph(graph: Graph, path: Path) -> str:
    """Writes the artifact as a whole or not at all.

    Args:
        graph: what to write.
        path: the artifact's folder; an older one is replaced.

    Returns:
        The fingerprint: a hash over all arrays and names.
    """
    with new_directory(path) as folder:
        np.save(folder / "edges.npy", np.ascontiguousarray(graph.edges, dtype=np.int64))
        if scipy.sparse.issparse(graph.features):
            scipy.sparse.save_npz(folder / "features.npz", graph.features.tocsr(), compressed=False)
        else:
            np.save(folder / "features.npy", np.ascontiguousarray(graph.features, dtype=np.float32))
        np.save(folder / "labels.npy", graph.labels.astype(np.int64, copy=False))
        np.save(folder / "split.npy", graph.split.astype(np.int8, copy=False))
        np.save(folder / "node_ids.npy", graph.node_ids, allow_pickle=False)
        if graph.sites is not None:
            np.save(folder / "sites.npy", graph.sites.astype(np.int32, copy=False))
        fingerprint = _fingerprint(graph)
        write_manifest(folder, kind=KIND, version=VERSION, body=_body(graph, fingerprint))
    return fingerprint


def read_graph_schema(path: Path) -> GraphSchema:
    """Reads what the manifest says, without checking the arrays.

    Raises:
        ArtifactError: not a graph artifact of this version.
    """
    return _schema(read_manifest(path, kind=KIND, version=VERSION, verify=False))


def read_graph(path: Path, *, verify: bool = True) -> Graph:
    """Reads the artifact; dense arrays are memory-mapped.

    Args:
        path: the artifact's folder.
        verify: compare every file with its checksum.

    Raises:
        ArtifactError: a file is missing, altered, or holds pickled objects.
    """
    schema = _schema(read_manifest(path, kind=KIND, version=VERSION, verify=verify))
    sparse = path / "features.npz"
    try:
        features = scipy.sparse.load_npz(sparse) if sparse.exists() else _load(path / "features.npy")
    except ValueError as error:
        raise ArtifactError(f"{sparse}: {error}") from error
    return Graph(
        edges=_load(path / "edges.npy"),
        features=features,
        labels=_load(path / "labels.npy"),
        split=_load(path / "split.npy"),
        node_ids=_load(path / "node_ids.npy"),
        sites=_load(path / "sites.npy") if schema.site_names else None,
        label_names=schema.label_names,
        feature_names=schema.feature_names,
        undirected=schema.undirected,
        site_names=schema.site_names,
        warnings=schema.warnings,
        fingerprint=schema.fingerprint,
    )


def _load(path: Path) -> Array:
    try:
        loaded: Array = np.load(path, mmap_mode="r", allow_pickle=False)
    except ValueError as error:
        raise ArtifactError(f"{path}: {error}") from error
    return loaded


def _body(graph: Graph, fingerprint: str) -> dict[str, Any]:
    return {
        "num_nodes": graph.num_nodes,
        "num_edges": graph.num_edges,
        "num_features": graph.num_features,
        "label_names": list(graph.label_names),
        "feature_names": list(graph.feature_names),
        "site_names": list(graph.site_names),
        "undirected": graph.undirected,
        "fingerprint": fingerprint,
        "warnings": list(graph.warnings),
    }


def _schema(document: dict[str, Any]) -> GraphSchema:
    return GraphSchema(
        num_nodes=document["num_nodes"],
        num_edges=document["num_edges"],
        num_features=document["num_features"],
        label_names=tuple(document["label_names"]),
        feature_names=tuple(document["feature_names"]),
        site_names=tuple(document["site_names"]),
        undirected=document["undirected"],
        fingerprint=document["fingerprint"],
        warnings=tuple(document["warnings"]),
    )


def _fingerprint(graph: Graph) -> str:
    digest = hashlib.sha256()
    arrays = [graph.edges, graph.labels, graph.split, graph.node_ids]
    if scipy.sparse.issparse(graph.features):
        csr = graph.features.tocsr()
        arrays += [csr.indptr, csr.indices, csr.data]
    else:
        arrays.append(graph.features)
    if graph.sites is not None:
        arrays.append(graph.sites)
    for array in arrays:
        digest.update(f"{array.dtype.str}{array.shape}".encode())
        digest.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    digest.update(repr((graph.label_names, graph.feature_names, graph.site_names, graph.undirected)).encode())
    return digest.hexdigest()
