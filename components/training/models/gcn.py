"""Graph convolutional network (Kipf & Welling, 2017)."""

import torch
from torch import Tensor, nn

from ..message_passing import EdgeList, sampling_scale, sum_messages
from ..sparse_rows import project


class GcnLayer(nn.Module):
    """`D^-1/2 (A + I) D^-1/2 X W + b`, D from the in-degree in the whole graph plus one for the self-loop.

    The self-loop is added here, not stored: the destinations are the first of the sources. The degrees are
    those of the whole graph, so that a node at the edge of a part weighs what it weighs in one piece.

    Args:
        in_size: width of the input.
        out_size: width of the output.
    """

    def __init__(self, in_size: int, out_size: int):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(out_size, in_size))
        self.bias = nn.Parameter(torch.zeros(out_size))
        nn.init.xavier_uniform_(self.weight)

    def forward(self, graph: EdgeList, x: Tensor) -> Tensor:
        """Returns float [number of destinations, out_size] from x, float [s, in_size]."""
        norm = torch.rsqrt(graph.in_degree + 1.0).unsqueeze(1)
        scaled = project(x, self.weight) * norm
        num_destinations = graph.num_messages.size(0)
        neighbours = sum_messages(graph, scaled) * sampling_scale(graph).unsqueeze(1)
        return (neighbours + scaled[:num_destinations]) * norm[:num_destinations] + self.bias
