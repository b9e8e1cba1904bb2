"""Some real nodes of a site with all that reaches them, put together from the part files."""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy.sparse

from ..ingest.graph import Array

_TEST_MASK = "_N/test_mask"


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Neighbourhood:
    """A subgraph that holds every in-neighbour of its seeds up to some hops."""

    features: Array
    """float32 [n, F]."""
    edge_index: Array
    """int64 [2, e], source and destination, counted inside the subgraph."""
    seeds: Array
    """int64 [s], the nodes whose neighbourhood is complete."""
    node_ids: Array
    """The user's ids [n]."""


def read_neighbourhood(
    directory: Path, node_ids: Array, *, num_seeds: int, num_hops: int, max_nodes: int, seed: int
) -> Neighbourhood:
    """Reads the complete neighbourhood of some nodes of a site, test nodes first.

    Args:
        directory: the site's folder.
        node_ids: the user's ids by DGL's id.
        num_seeds: nodes wanted; the number is halved until their neighbourhood is small enough.
        num_hops: hops of in-neighbours.
        max_nodes: most nodes in all, unless one node alone needs more.
        seed: seed of the choice.
    """
    import dgl
    import torch
    from dgl.data.utils import load_tensors

    description = json.loads((directory / "graph.json").read_text(encoding="utf-8"))
    num_nodes, num_parts = description["num_nodes"], description["num_parts"]
    ranges = description["node_map"]["_N"]
    sources, destinations, is_test = [], [], np.zeros(num_nodes, dtype=bool)
    for part, (start, stop) in enumerate(ranges):
        (graph,), _ = dgl.load_graphs(str(directory / f"part-{part}" / "graph.dgl"))
        own = graph.edata["inner_edge"].to(torch.bool)
        ids = graph.ndata[dgl.NID]
        source, destination = graph.edges()
        sources.append(ids[source[own]].numpy())
        destinations.append(ids[destination[own]].numpy())
        data = load_tensors(str(directory / f"part-{part}" / "node_feat.dgl"))
        is_test[start:stop] = data[_TEST_MASK].numpy().astype(bool)
    into = scipy.sparse.csr_matrix(
        (
            np.ones(sum(map(len, sources)), dtype=np.int8),
            (np.concatenate(destinations), np.concatenate(sources)),
        ),
        shape=(num_nodes, num_nodes),
    )
    seeds, members = _choose(into, is_test, num_seeds, num_hops, max_nodes, seed)
    features = []
    for part in range(num_parts):
        start, stop = ranges[part]
        inside = members[(members >= start) & (members < stop)] - start
        data = load_tensors(str(directory / f"part-{part}" / "node_feat.dgl"))
        features.append(data["_N/features"][torch.from_numpy(inside)].numpy())
    inner = into[members][:, members].tocoo()
    return Neighbourhood(
        features=np.concatenate(features),
        edge_index=np.stack([inner.col, inner.row]).astype(np.int64),
        seeds=np.searchsorted(members, seeds).astype(np.int64),
        node_ids=node_ids[members],
    )


def _choose(
    into: scipy.sparse.csr_matrix, is_test: Array, num_seeds: int, num_hops: int, max_nodes: int, seed: int
) -> tuple[Array, Array]:
    generator = np.random.default_rng(seed)
    order = generator.permutation(len(is_test))
    order = order[np.argsort(~is_test[order], kind="stable")][:num_seeds]
    while True:
        members = reached = order
        for _ in range(num_hops):
            reached = np.setdiff1d(np.unique(into[reached].indices), members)
            members = np.union1d(members, reached)
        if len(members) <= max_nodes or len(order) == 1:
            return np.sort(order), np.sort(members)
        order = order[: max(1, len(order) // 2)]
