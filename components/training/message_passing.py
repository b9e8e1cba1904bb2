"""The one aggregation operator that all layers are written over.

A layer sees a graph as five things: `source` and `destination` of each edge, `in_degree` of each source
node in the whole graph, `num_messages` that arrive at each destination here, and `sum_messages`:

- `EdgeList`: plain tensors; scripts, exports to ONNX, needs no DGL;
- `BlockEdges`: a DGL block (or a stand-in with the same few methods), summed by DGL's kernels.

The destinations are the first of the sources in both. With sampled neighbours `num_messages` is smaller than
`in_degree`; `mean_messages`, and sums times `sampling_scale`, are then unbiased estimates of what the full
neighbourhood would give (Hamilton et al., 2017, for the mean). Knows nothing of layers, parts or servers.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch._jit_internal import is_scripting

IN_DEGREE = "in_degree"
"""Node data of a block's sources: their in-degree in the whole graph, int64 [num_sources]."""


class EdgeList(NamedTuple):
    """A graph as plain tensors, with n nodes, of which the first are destinations."""

    source: Tensor
    """Node that each edge leaves, int64 [e]."""
    destination: Tensor
    """Node that each edge enters, int64 [e]."""
    in_degree: Tensor
    """In-degree of each node in the whole graph, float32 [n]."""
    num_messages: Tensor
    """Edges that enter each destination here, float32 [number of destinations]."""


class BlockEdges:
    """A DGL block seen as a graph of messages.

    Args:
        block: a message-flow graph of one edge type; layers that ask for it need `srcdata["in_degree"]`.
    """

    def __init__(self, block: Any):
        self._block = block
        self.source, self.destination = block.edges()
        self.num_messages = block.in_degrees().float()

    @property
    def in_degree(self) -> Tensor:
        """In-degree of each source in the whole graph, float32 [s]."""
        return torch.as_tensor(self._block.srcdata[IN_DEGREE]).float()

    def sum_messages(self, values: Tensor, weights: Tensor | None) -> Tensor:
        """Sums over the edges that enter each destination, by DGL's sparse kernels."""
        import dgl

        if weights is None:
            return torch.as_tensor(dgl.ops.copy_u_sum(self._block, values))
        return torch.as_tensor(dgl.ops.u_mul_e_sum(self._block, values, weights))


def graph_of(block: Any) -> "EdgeList | BlockEdges":
    """Returns what layers take, of a block as a model's `forward(blocks, x)` is given it.

    Args:
        block: a DGL block in training; an `EdgeList` when the model is exported.
    """
    return block if isinstance(block, EdgeList) else BlockEdges(block)


def whole_graph(edge_index: Tensor, num_nodes: int) -> EdgeList:
    """Returns the graph of all nodes and edges.

    Args:
        edge_index: int64 [2, e], sources and destinations.
        num_nodes: n.
    """
    source = edge_index[0]
    destination = edge_index[1]
    ones = torch.ones_like(destination, dtype=torch.float32)
    degree = torch.zeros(num_nodes, dtype=torch.float32).scatter_add(0, destination, ones)
    return EdgeList(source, destination, degree, degree)


def sum_messages(graph: EdgeList, values: Tensor, weights: Tensor | None = None) -> Tensor:
    """Sums what the sources send, over the edges that enter each destination.

    Args:
        graph: an `EdgeList`, or a `BlockEdges` when not scripted.
        values: float32 [s, d] or [s, heads, d], one row a source.
        weights: float32 [e, 1] or [e, heads, 1] that each edge's message is multiplied by, or None.

    Returns:
        Float32 [number of destinations, ...]; zeros where no edge enters.
    """
    # TorchScript skips the inner test only when it is nested.
    if not is_scripting():  # noqa: SIM102
        if isinstance(graph, BlockEdges):
            return graph.sum_messages(values, weights)
    messages = values.index_select(0, graph.source)
    if weights is not None:
        messages = messages * weights
    flat = messages.flatten(1)
    index = graph.destination.unsqueeze(1).expand(-1, flat.size(1))
    total = torch.zeros([graph.num_messages.size(0), flat.size(1)]).scatter_add(0, index, flat)
    return total if values.dim() == 2 else total.view(-1, values.size(1), values.size(2))


def mean_messages(graph: EdgeList, values: Tensor) -> Tensor:
    """Returns the mean over the edges that enter each destination, float [number of destinations, d].

    Args:
        graph: the graph.
        values: float [s, d].
    """
    return sum_messages(graph, values) / graph.num_messages.clamp(min=1.0).unsqueeze(1)


def sampling_scale(graph: EdgeList) -> Tensor:
    """Returns what a sum over the edges present is multiplied by to estimate the sum over all edges.

    Returns:
        Float [number of destinations]: in-degree over messages; 1 where nothing was left out.
    """
    present = graph.num_messages
    return graph.in_degree[: present.size(0)] / present.clamp(min=1.0)
