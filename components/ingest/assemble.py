"""Puts a graph together from what the options name."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse

from .._files import InputError, open_uri
from .._launch import progress
from .config import EDGES_NEEDED, NODES_NEEDED, IngestConfig
from .edges import EdgeCollector, Edges, read_edges
from .example import digits
from .features import read_features
from .graph import TEST, TRAIN, VALIDATION, Array, Graph
from .identifiers import Rows
from .nodes import Nodes, name_labels, read_nodes
from .split import stratified
from .tables import CHUNK_ROWS
from .whole_graph import read_whole_graph, whole_graph_uri


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class _Bare:
    """Nodes without a table: numbered from 0."""

    num_nodes: int
    labels: Array
    features: Any
    split: Array | None


def assemble(config: IngestConfig) -> tuple[Graph, Edges]:
    """Reads, checks and joins nodes, edges and features.

    Returns:
        The graph, not yet written, and what was dropped from its edges.

    Raises:
        InputError: the first thing found wrong.
    """
    for uri in filter(None, (config.nodes, config.edges, config.features)):
        with open_uri(uri):  # what is not there is said before the others are read
            pass
    if not (config.nodes or config.edges or config.features):
        progress("no tables are named: taking the built-in example, handwritten digits and their neighbours")
        pairs, features, labels = digits()
        bare = _Bare(num_nodes=len(labels), labels=labels, features=features, split=None)
        return _from_pairs(config, pairs, bare)
    whole = whole_graph_uri(config)
    if whole:
        return _from_whole_graph(config, whole)
    if not config.nodes:
        raise InputError(NODES_NEEDED)
    if not config.edges:
        raise InputError(EDGES_NEEDED)
    return _from_tables(config)


def _from_tables(config: IngestConfig) -> tuple[Graph, Edges]:
    progress(f"reading nodes from {config.nodes}")
    nodes = read_nodes(config)
    progress(
        f"{len(nodes.ids):,} nodes of {len(nodes.label_names)} classes; reading edges from {config.edges}"
    )
    columns = (config.source_column, config.destination_column)
    edges = read_edges(config.edges, columns, Rows(nodes.ids), _collector(config, len(nodes.ids)))
    features = read_features(config.features, len(nodes.ids)) if config.features else nodes.features
    return _graph(config, nodes, edges, features), edges


def _from_whole_graph(config: IngestConfig, uri: str) -> tuple[Graph, Edges]:
    progress(f"reading the graph from {uri}")
    stored = read_whole_graph(uri)
    features = read_features(config.features, stored.num_nodes) if config.features else stored.features
    if config.nodes not in ("", uri):
        nodes = read_nodes(config)
        if len(nodes.ids) != stored.num_nodes:
            raise InputError(f"{config.nodes}: {len(nodes.ids)} nodes but {uri} has {stored.num_nodes}")
        chosen = features if nodes.features is None else nodes.features
        edges = _collect(config, stored.edges, stored.num_nodes)
        return _graph(config, nodes, edges, chosen), edges
    if stored.labels is None:
        raise InputError(f"{uri}: no node data named labels, label or y; give the option nodes too")
    if features is None:
        raise InputError(f"{uri}: no node data named features, feat or x; give the option features too")
    bare = _Bare(num_nodes=stored.num_nodes, labels=stored.labels, features=features, split=stored.split)
    return _from_pairs(config, stored.edges, bare)


def _from_pairs(config: IngestConfig, pairs: Array, bare: _Bare) -> tuple[Graph, Edges]:
    known = bare.labels != "" if bare.labels.dtype.kind == "U" else bare.labels >= 0
    if not known.any():
        raise InputError(
            f"{config.edges or config.nodes}: no node has a label; at least two classes are needed"
        )
    numbers, names = name_labels(bare.labels[known])
    labels = np.full(bare.num_nodes, -1, dtype=np.int64)
    labels[known] = numbers
    edges = _collect(config, pairs, bare.num_nodes)
    nodes = Nodes(
        ids=np.arange(bare.num_nodes),
        labels=labels,
        label_names=names,
        split=bare.split,
        sites=None,
        site_names=(),
        features=None,
        feature_names=(),
    )
    return _graph(config, nodes, edges, bare.features), edges


def _collector(config: IngestConfig, num_nodes: int) -> EdgeCollector:
    return EdgeCollector(num_nodes, undirected=config.undirected, keep_self_loops=config.self_loops == "keep")


def _collect(config: IngestConfig, pairs: Array, num_nodes: int) -> Edges:
    collector = _collector(config, num_nodes)
    for first in range(0, pairs.shape[1], CHUNK_ROWS):
        collector.add(*pairs[:, first : first + CHUNK_ROWS])
    edges = collector.finish()
    if edges.pairs.shape[1] == 0:
        where = config.edges or config.nodes
        raise InputError(f"{where}: no edges between different nodes; at least one is needed")
    return edges


def _graph(config: IngestConfig, nodes: Nodes, edges: Edges, features: Any) -> Graph:
    split = nodes.split
    if split is None:
        split = stratified(nodes.labels, config.train_fraction, config.validation_fraction, config.seed)
    _check_training(nodes, split, config)
    return Graph(
        edges=edges.pairs,
        features=features,
        labels=nodes.labels,
        split=split,
        node_ids=nodes.ids,
        label_names=nodes.label_names,
        feature_names=nodes.feature_names,
        undirected=config.undirected,
        site_names=nodes.site_names,
        sites=nodes.sites,
        warnings=(*_warnings(config, nodes, edges, split), *_feature_warnings(features)),
    )


def _check_training(nodes: Nodes, split: Array, config: IngestConfig) -> None:
    where = config.nodes or config.edges or "the example"
    if len(nodes.label_names) < 2:
        raise InputError(f"{where}: one class only ({nodes.label_names[0]!r}); at least two are needed")
    used = np.isin(split, (TRAIN, VALIDATION, TEST)) & (nodes.labels < 0)
    if used.any():
        first = nodes.ids[int(np.flatnonzero(used)[0])]
        raise InputError(
            f"{where}: {int(used.sum())} nodes have a split but no label, first the id {str(first)!r}; "
            f"label them, or leave their {config.split_column} empty"
        )
    if not (split == TRAIN).any():
        raise InputError(f"{where}: no training node; at least one is needed")


def _warnings(config: IngestConfig, nodes: Nodes, edges: Edges, split: Array) -> list[str]:
    found = list(nodes.warnings)
    if not (config.nodes or config.edges or config.features):
        found.append("No tables were named: this is the built-in example, scikit-learn's handwritten digits.")
    if edges.num_self_loops:
        done = "kept" if config.self_loops == "keep" else "removed"
        found.append(f"{edges.num_self_loops:,} edges from a node to itself were {done}.")
    if edges.num_duplicates:
        how = " (both directions are one edge)" if config.undirected else ""
        found.append(f"{edges.num_duplicates:,} edges given more than once{how} were merged.")
    touched = np.zeros(len(split), dtype=bool)
    touched[edges.pairs[0]] = touched[edges.pairs[1]] = True
    isolated = len(split) - int(touched.sum())
    if isolated:
        found.append(f"{isolated:,} nodes have no edge; only their own features speak for them.")
    for code, name in ((VALIDATION, "validation"), (TEST, "test")):
        if not (split == code).any():
            found.append(f"There is no {name} node: no {name} metric will be reported.")
    return found


def _feature_warnings(features: Any) -> list[str]:
    rows = features.getnnz(axis=1) if scipy.sparse.issparse(features) else np.asarray(features).any(axis=1)
    empty = int((rows == 0).sum())
    return [f"{empty:,} nodes have only zeros as features."] if empty else []
