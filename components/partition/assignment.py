"""Which site, and which part of it, each node belongs to: the two levels over one method.

Knows nothing of files.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse

from .._files import InputError
from ..ingest.graph import TRAIN, Array, Graph
from .attribute import attribute
from .config import PartitionConfig
from .metis import metis
from .uniform import uniform


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Assignment:
    """Where each node goes."""

    sites: Array
    """int64 [n], index of the node's site."""
    parts: Array
    """int64 [n], index of the node's part inside its site."""
    site_names: tuple[str, ...]
    """Name of each site."""
    num_parts: int
    """Parts of each site."""

    @property
    def flat(self) -> Array:
        """int64 [n], the part counted over all sites."""
        return self.sites * self.num_parts + self.parts


def assign(graph: Graph, config: PartitionConfig) -> Assignment:
    """Assigns every node to one part of one site.

    Raises:
        InputError: more sites or parts than nodes or training nodes, or sites that the data does not carry.
    """
    _check_size(graph, config)
    adjacency = _adjacency(graph)
    sites, names = _sites(graph, adjacency, config)
    parts = np.zeros(graph.num_nodes, dtype=np.int64)
    for site, name in enumerate(names):
        rows = np.flatnonzero(sites == site)
        train = int((graph.split[rows] == TRAIN).sum())
        if train < config.num_parts:
            raise InputError(
                f"num_parts is {config.num_parts} but site {name!r} has {train} training nodes; "
                f"allowed: 1 to {train} (every part needs one)"
            )
        inner_method = (
            "metis" if len(names) > 1 and config.partition_method != "random" else config.partition_method
        )
        if len(names) == 1 and config.partition_method == "attribute":
            parts[rows] = attribute(graph, config.num_parts, option="num_parts")[rows]
        else:
            parts[rows] = _divide(graph, adjacency, rows, config.num_parts, inner_method, config)
        _give_each_a_training_node(parts, rows, graph.split, config.num_parts)
    return Assignment(sites=sites, parts=parts, site_names=names, num_parts=config.num_parts)


def _check_size(graph: Graph, config: PartitionConfig) -> None:
    wanted = max(1, config.num_sites) * config.num_parts
    trained = int((graph.split == TRAIN).sum())
    for have, what in ((graph.num_nodes, "nodes"), (trained, "training nodes")):
        if wanted > have:
            raise InputError(
                f"num_sites {config.num_sites} x num_parts {config.num_parts} = {wanted} parts but the "
                f"graph has {have} {what}; allowed: at most {have} parts"
            )


def _sites(graph: Graph, adjacency: Any, config: PartitionConfig) -> tuple[Array, tuple[str, ...]]:
    if config.num_sites == 1:
        return np.zeros(graph.num_nodes, dtype=np.int64), ("site-0",)
    if config.partition_method == "attribute":
        sites = attribute(graph, config.num_sites, option="num_sites")
        return sites, graph.site_names
    rows = np.arange(graph.num_nodes)
    sites = _divide(graph, adjacency, rows, config.num_sites, config.partition_method, config)
    _give_each_a_training_node(sites, rows, graph.split, config.num_sites)
    return sites, tuple(f"site-{site}" for site in range(config.num_sites))


def _divide(
    graph: Graph, adjacency: Any, rows: Array, count: int, method: str, config: PartitionConfig
) -> Array:
    split = np.asarray(graph.split[rows])
    if method == "random":
        return uniform(split, count, seed=config.seed)
    inside = adjacency[rows][:, rows] if len(rows) < graph.num_nodes else adjacency
    balanced = [np.ones(len(rows))]
    if config.balance_train:
        balanced.append((split == TRAIN).astype(np.float64))
    if config.balance_edges:
        balanced.append(np.diff(inside.indptr).astype(np.float64))
    return metis(inside, count, balanced=tuple(balanced), seed=config.seed)


def _give_each_a_training_node(parts: Array, rows: Array, split: Array, count: int) -> None:
    """Moves a training node from the richest part to each part that has none; METIS promises no minimum."""
    training = rows[split[rows] == TRAIN]
    held = np.bincount(parts[training], minlength=count)
    for poor in np.flatnonzero(held == 0):
        rich = int(held.argmax())
        moved = training[np.flatnonzero(parts[training] == rich)[0]]
        parts[moved] = poor
        held[rich] -= 1
        held[poor] += 1


def _adjacency(graph: Graph) -> Any:
    ones = np.ones(graph.num_edges, dtype=np.int8)
    shape = (graph.num_nodes, graph.num_nodes)
    return scipy.sparse.csr_matrix((ones, (graph.edges[0], graph.edges[1])), shape=shape)
