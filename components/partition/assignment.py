"""Which site, and which part of it, each node belongs to: two levels over the methods.

Knows nothing of files.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse

from .._files import InputError
from ..ingest.graph import TRAIN, Array, Graph
from .attribute import attribute
from .config import PartitionConfig
from .exchange import even_out
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

    @property
    def part_names(self) -> list[str]:
        """Name of each part, in the order of `flat`."""
        parts = [f"part {part}" for part in range(self.num_parts)]
        return parts if len(self.site_names) == 1 else [f"{s} {p}" for s in self.site_names for p in parts]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class _Nodes:
    """What a method may look at: some of the nodes."""

    adjacency: Any
    """scipy CSR [m, m], the edges among them."""
    split: Array
    """int8 [m]."""
    sites: Array | None
    """int32 [m], index into the graph's site names."""
    site_names: tuple[str, ...]
    """The graph's site names."""


def _by_metis(nodes: _Nodes, count: int, config: PartitionConfig) -> Array:
    balanced = [np.ones(len(nodes.split))]
    if config.balance_edges:
        balanced.append(np.diff(nodes.adjacency.indptr).astype(np.float64))
    parts = metis(nodes.adjacency, count, balanced=tuple(balanced), seed=config.seed)
    if config.balance_train:
        parts = even_out(parts, nodes.split == TRAIN, nodes.adjacency, count)
    return parts


def _by_random(nodes: _Nodes, count: int, config: PartitionConfig) -> Array:
    return uniform(nodes.split, count, seed=config.seed)


def _by_attribute(nodes: _Nodes, count: int, _: PartitionConfig) -> Array:
    return attribute(nodes.sites, nodes.site_names, count)


METHODS: dict[str, Callable[[_Nodes, int, PartitionConfig], Array]] = {
    "metis": _by_metis,
    "random": _by_random,
    "attribute": _by_attribute,
}
"""Each returns int64 [m], the part of each node."""


def assign(graph: Graph, config: PartitionConfig) -> Assignment:
    """Assigns every node to one part of one site.

    Every part gets a training node at least, and so is never empty.

    Raises:
        InputError: more sites or parts than nodes or training nodes, or sites that the data does not carry.
    """
    everything = _Nodes(
        adjacency=_adjacency(graph),
        split=np.asarray(graph.split),
        sites=graph.sites,
        site_names=graph.site_names,
    )
    sites, names = _sites(everything, config)
    parts = np.zeros(graph.num_nodes, dtype=np.int64)
    method = _inner_method(config)
    for site, name in enumerate(names):
        rows = np.flatnonzero(sites == site)
        nodes = _some(everything, rows)
        _check_site(name, nodes.split, config.num_parts)
        inside = METHODS[method](nodes, config.num_parts, config)
        parts[rows] = _with_training_nodes(inside, nodes.split, config.num_parts, least=1)
    return Assignment(sites=sites, parts=parts, site_names=names, num_parts=config.num_parts)


def _sites(nodes: _Nodes, config: PartitionConfig) -> tuple[Array, tuple[str, ...]]:
    if config.partition_method == "attribute":
        return METHODS["attribute"](nodes, config.num_sites, config), nodes.site_names
    _check_whole(nodes.split, config)
    names = tuple(f"site-{site}" for site in range(config.num_sites))
    if config.num_sites == 1:
        return np.zeros(len(nodes.split), dtype=np.int64), names
    sites = METHODS[config.partition_method](nodes, config.num_sites, config)
    return _with_training_nodes(sites, nodes.split, config.num_sites, least=config.num_parts), names


def _inner_method(config: PartitionConfig) -> str:
    return "random" if config.partition_method == "random" else "metis"


def _check_whole(split: Array, config: PartitionConfig) -> None:
    wanted = config.num_sites * config.num_parts
    for have, what in ((len(split), "nodes"), (int((split == TRAIN).sum()), "training nodes")):
        if wanted > have:
            raise InputError(
                f"num_sites {config.num_sites} x num_parts {config.num_parts} = {wanted} parts but the "
                f"graph has {have} {what}; allowed: at most {have} parts, each needs one"
            )


def _check_site(name: str, split: Array, num_parts: int) -> None:
    training = int((split == TRAIN).sum())
    if training == 0:
        raise InputError(
            f"site {name!r} has {len(split)} nodes and none of them is a training node; "
            "allowed: sites with one training node or more for each of num_parts"
        )
    if training < num_parts:
        raise InputError(
            f"num_parts is {num_parts} but site {name!r} has {training} training nodes; "
            f"allowed: 1 to {training}, each part needs one"
        )


def _with_training_nodes(parts: Array, split: Array, count: int, *, least: int) -> Array:
    """Moves training nodes from the richest part to each that has too few; METIS promises no minimum."""
    parts = parts.copy()
    training = np.flatnonzero(split == TRAIN)
    held = np.bincount(parts[training], minlength=count)
    while held.min() < least:
        rich, poor = int(held.argmax()), int(held.argmin())
        parts[training[np.flatnonzero(parts[training] == rich)[0]]] = poor
        held[rich] -= 1
        held[poor] += 1
    return parts


def _some(nodes: _Nodes, rows: Array) -> _Nodes:
    if len(rows) == len(nodes.split):
        return nodes
    return _Nodes(
        adjacency=nodes.adjacency[rows][:, rows],
        split=nodes.split[rows],
        sites=None if nodes.sites is None else nodes.sites[rows],
        site_names=nodes.site_names,
    )


def _adjacency(graph: Graph) -> Any:
    ones = np.ones(graph.num_edges, dtype=np.int32)
    shape = (graph.num_nodes, graph.num_nodes)
    return scipy.sparse.csr_matrix((ones, (graph.edges[0], graph.edges[1])), shape=shape)
