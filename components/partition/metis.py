"""METIS by multilevel k-way partitioning (Karypis and Kumar, 1998), reproducible from a seed.

METIS is called through pymetis, which takes a seed and one weight a node; DGL's own call takes several
weights and no seed, and two equal calls of it differ. With several weights their sum is balanced, each scaled
to the same total, so that one can be high where another is low; METIS allows the sum 3 % above the mean.
What must be even by itself (training nodes) is therefore evened out afterwards, in `exchange`.
"""

from typing import Any

import numpy as np
import pymetis
import scipy.sparse

from ..ingest.graph import Array

_WEIGHT_RESOLUTION = 100


def metis(adjacency: Any, num_parts: int, *, balanced: tuple[Array, ...], seed: int) -> Array:
    """Divides nodes so that few edges are cut.

    Args:
        adjacency: scipy CSR [n, n]; directions, weights and self-loops are ignored.
        num_parts: number of parts.
        balanced: arrays [n], not negative; the sum of all of them, each scaled to total n, is balanced.
        seed: seed of the coarsening.

    Returns:
        int64 [n], the part of each node.
    """
    if num_parts == 1:
        return np.zeros(adjacency.shape[0], dtype=np.int64)
    symmetric = _symmetric(adjacency)
    neighbours = pymetis.CSRAdjacency(symmetric.indptr.astype(np.int64), symmetric.indices.astype(np.int64))
    _, parts = pymetis.part_graph(
        num_parts,
        adjacency=neighbours,
        vweights=_weights(balanced),
        options=pymetis.Options(seed=seed + 1),  # to the C library, seeds 0 and 1 are one
        recursive=False,
    )
    return np.asarray(parts, dtype=np.int64)


def _symmetric(adjacency: Any) -> Any:
    present = scipy.sparse.csr_matrix(
        (np.ones(adjacency.nnz, dtype=bool), adjacency.indices, adjacency.indptr), shape=adjacency.shape
    )
    both = (present + present.T).tocoo()
    off_diagonal = both.row != both.col
    both = scipy.sparse.csr_matrix(
        (both.data[off_diagonal], (both.row[off_diagonal], both.col[off_diagonal])), shape=both.shape
    )
    both.sort_indices()
    return both


def _weights(balanced: tuple[Array, ...]) -> list[int]:
    num_nodes = len(balanced[0])
    total = np.zeros(num_nodes)
    for weight in balanced:
        if weight.sum() > 0:
            total += weight * (num_nodes / weight.sum())
    return [int(value) for value in np.maximum(1, np.rint(total * _WEIGHT_RESOLUTION))]
