"""Real nodes to compare models on, and what the trained model says of them over DGL blocks.

Knows nothing of formats.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from ..partition.partitions import SitePartitions
from ..training.message_passing import IN_DEGREE

MOST_VALUES = 1 << 25
"""Most feature values that are read for the comparison: 128 MiB of float32."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Case:
    """A graph that a model is run on."""

    x: Tensor
    """Features, float32 [n, num_features]."""
    edge_index: Tensor
    """Sources and destinations, int64 [2, e]."""
    seeds: Tensor
    """Nodes whose logits are compared, int64 [s]."""


def real_cases(
    site: SitePartitions, *, num_features: int, num_seeds: int, num_layers: int, seed: int
) -> list[Case]:
    """Reads graphs of three sizes, of which a format with sizes baked in can fit one at most.

    The first holds one hop more than the model has layers, so that the degree of every node that the model
    looks at is the one in the whole graph: its seeds get the logits that they have in the whole graph.

    Args:
        site: where the nodes are from.
        num_features: width of a node's features.
        num_seeds: nodes to compare, test nodes first.
        num_layers: hops that the model looks at.
        seed: seed of the choice.

    Returns:
        The seeds with their neighbourhood; half of those nodes; one node without edges.
    """
    most_nodes = max(1, MOST_VALUES // max(1, num_features))
    found = site.neighbourhood(num_seeds, num_layers + 1, most_nodes, seed)
    x = torch.from_numpy(np.ascontiguousarray(found.features))
    edge_index = torch.from_numpy(found.edge_index)
    half = max(1, len(x) // 2)
    inside = (edge_index < half).all(0)
    no_edges = torch.empty(2, 0, dtype=torch.int64)
    return [
        Case(x=x, edge_index=edge_index, seeds=torch.from_numpy(found.seeds)),
        Case(x=x[:half], edge_index=edge_index[:, inside], seeds=torch.arange(half)),
        Case(x=x[:1], edge_index=no_edges, seeds=torch.zeros(1, dtype=torch.int64)),
    ]


def block_logits(model: nn.Module, case: Case, num_layers: int) -> Tensor:
    """Returns what the model gives over DGL blocks of full neighbourhoods, float32 [s, num_classes].

    Args:
        model: called as `model(blocks, x)`, in evaluation mode.
        case: the graph.
        num_layers: blocks that the model takes.
    """
    import dgl

    source, destination = case.edge_index
    graph = dgl.graph((source, destination), num_nodes=len(case.x))
    graph.ndata[IN_DEGREE] = graph.in_degrees()
    inputs, _, blocks = dgl.dataloading.MultiLayerFullNeighborSampler(num_layers).sample_blocks(
        graph, case.seeds
    )
    for block in blocks:
        block.srcdata[IN_DEGREE] = graph.ndata[IN_DEGREE][block.srcdata[dgl.NID]]
    with torch.no_grad():
        return torch.as_tensor(model(blocks, case.x[inputs]))
