"""How good an assignment is; computed here because DGL reports a cut of zero for whatever it is given."""

from typing import Any

import numpy as np
import scipy.sparse

from ..ingest.graph import TRAIN, Array, Graph
from .assignment import Assignment


def measure(graph: Graph, assignment: Assignment, *, halo_hops: int = 1) -> dict[str, float]:
    """Returns the figures of an assignment.

    Args:
        graph: the graph.
        assignment: where its nodes go.
        halo_hops: hops of in-neighbours that a part knows beyond its own nodes.

    Returns:
        edge_cut_fraction: edges whose ends lie in different parts, of all edges;
        site_edge_cut_fraction: those whose ends lie in different sites;
        boundary_edges: their number;
        node_balance, edge_balance, train_balance: the largest part over the mean part (1 = even);
        replication_factor: own and halo nodes of all parts over nodes.
    """
    source, destination = graph.edges
    flat = assignment.flat
    num_flat = len(assignment.site_names) * assignment.num_parts
    between_sites = assignment.sites[source] != assignment.sites[destination]
    kept = ~between_sites
    held = flat[destination[kept]]
    return {
        "edge_cut_fraction": _mean(flat[source] != flat[destination]),
        "site_edge_cut_fraction": _mean(between_sites),
        "boundary_edges": float(between_sites.sum()),
        "node_balance": _balance(np.bincount(flat, minlength=num_flat)),
        "edge_balance": _balance(np.bincount(held, minlength=num_flat)),
        "train_balance": _balance(np.bincount(flat[np.asarray(graph.split) == TRAIN], minlength=num_flat)),
        "replication_factor": _held(graph.edges[:, kept], flat, halo_hops) / graph.num_nodes,
    }


def _held(edges: Array, parts: Array, hops: int) -> int:
    """Returns the number of own and halo nodes of all parts."""
    num_nodes = len(parts)
    shape = (num_nodes, num_nodes)
    into = scipy.sparse.csr_matrix((np.ones(edges.shape[1], dtype=bool), (edges[1], edges[0])), shape=shape)
    own = (np.ones(num_nodes, dtype=bool), (parts, np.arange(num_nodes)))
    known = scipy.sparse.csr_matrix(own, shape=(int(parts.max()) + 1, num_nodes))
    for _ in range(hops):
        known = known + known @ into
    return int(known.nnz)


def cut_matrix(graph: Graph, assignment: Assignment) -> Array:
    """Returns int64 [k, k]: edges from each part (row) to each part (column), over all sites."""
    count = len(assignment.site_names) * assignment.num_parts
    flat = assignment.flat
    pairs = flat[graph.edges[0]] * count + flat[graph.edges[1]]
    return np.bincount(pairs, minlength=count * count).reshape(count, count)


def _mean(values: Any) -> float:
    return float(values.mean()) if len(values) else 0.0


def _balance(sizes: Array) -> float:
    return float(sizes.max() / sizes.mean()) if sizes.sum() else 1.0
