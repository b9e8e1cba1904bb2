"""Nodes drawn at random, to compare models on where all real ones stay at their sites.

Knows nothing of formats.
"""

import torch

from .real_nodes import MOST_VALUES, Case

_IN_NEIGHBOURS = 8
"""A node has up to so many, as fit a neighbourhood; some have none."""
_NODES_PER_SEED = 4


def drawn_cases(*, num_features: int, num_seeds: int, seed: int) -> list[Case]:
    """Draws graphs of the three sizes that `real_cases` reads: features of a normal distribution, any edges.

    Args:
        num_features: width of a node's features.
        num_seeds: nodes to compare.
        seed: seed of the draw.

    Returns:
        A graph, half of its nodes, and one node without edges.
    """
    generator = torch.Generator().manual_seed(seed)
    num_nodes = max(2, min(_NODES_PER_SEED * num_seeds, MOST_VALUES // max(1, num_features)))
    x = torch.randn(num_nodes, num_features, generator=generator)
    num_into = torch.randint(_IN_NEIGHBOURS + 1, (num_nodes,), generator=generator)
    into = torch.arange(num_nodes).repeat_interleave(num_into)
    edge_index = torch.stack([torch.randint(num_nodes, (len(into),), generator=generator), into])
    half = num_nodes // 2
    inside = (edge_index < half).all(0)
    no_edges = torch.empty(2, 0, dtype=torch.int64)
    return [
        Case(x=x, edge_index=edge_index, seeds=torch.arange(min(num_seeds, num_nodes))),
        Case(x=x[:half], edge_index=edge_index[:, inside], seeds=torch.arange(half)),
        Case(x=x[:1], edge_index=no_edges, seeds=torch.zeros(1, dtype=torch.int64)),
    ]
