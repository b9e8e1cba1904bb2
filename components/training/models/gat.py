"""Graph attention network (Velickovic et al., 2018), with a self-loop on every node."""

import torch
from torch import Tensor, nn

from ..message_passing import EdgeList, sampling_scale, sum_messages
from ..sparse_rows import project


class GatLayer(nn.Module):
    """Attention over the neighbours and the node itself, softmax per head.

    The softmax is a quotient of sums of exponentials, shifted by each destination's largest score, so that
    the self-loop needs no edge and the same few operations run on a DGL block, in TorchScript and in ONNX.

    Args:
        in_size: width of the input.
        out_size: width of the output.
        num_heads: number of heads; heads are joined when `join` is set (out_size a multiple), else averaged.
        join: join the heads (inner layers) or average them (last layer).
    """

    def __init__(self, in_size: int, out_size: int, *, num_heads: int, join: bool):
        super().__init__()
        self.slope = 0.2
        self.num_heads = num_heads
        self.join = join
        self.head_size = out_size // num_heads if join else out_size
        self.fc = nn.Linear(in_size, num_heads * self.head_size, bias=False)
        self.score_source = nn.Parameter(torch.empty(1, num_heads, self.head_size))
        self.score_destination = nn.Parameter(torch.empty(1, num_heads, self.head_size))
        self.bias = nn.Parameter(torch.zeros(out_size))
        for parameter in (self.fc.weight, self.score_source, self.score_destination):
            nn.init.xavier_normal_(parameter)

    def forward(self, graph: EdgeList, x: Tensor) -> Tensor:
        """Returns float [number of destinations, out_size] from x, float [s, in_size]."""
        num_destinations = graph.num_messages.size(0)
        values = project(x, self.fc.weight).view(-1, self.num_heads, self.head_size)
        from_source = (values * self.score_source).sum(-1)
        own = values[:num_destinations]
        at_destination = (own * self.score_destination).sum(-1)
        edge_score = nn.functional.leaky_relu(
            from_source.index_select(0, graph.source) + at_destination.index_select(0, graph.destination),
            self.slope,
        )
        self_score = nn.functional.leaky_relu(from_source[:num_destinations] + at_destination, self.slope)
        index = graph.destination.unsqueeze(1).expand(-1, self.num_heads)
        largest = self_score.detach().scatter_reduce(0, index, edge_score.detach(), "amax", include_self=True)
        edge_weight = torch.exp(edge_score - largest.index_select(0, graph.destination))
        edge_weight = edge_weight * sampling_scale(graph).index_select(0, graph.destination).unsqueeze(1)
        self_weight = torch.exp(self_score - largest)
        total = torch.zeros_like(self_weight).scatter_add(0, index, edge_weight) + self_weight
        summed = sum_messages(graph, values, edge_weight.unsqueeze(2)) + own * self_weight.unsqueeze(2)
        heads = summed / total.unsqueeze(2)
        out: Tensor = (heads.flatten(1) if self.join else heads.mean(1)) + self.bias
        return out
