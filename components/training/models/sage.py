"""GraphSAGE with the mean aggregator (Hamilton, Ying & Leskovec, 2017)."""

from torch import Tensor, nn

from ..message_passing import EdgeList, mean_messages
from ..sparse_rows import head, project


class SageLayer(nn.Module):
    """`W_self x_v + b + mean over neighbours u of W_neighbour x_u`.

    Projects before it aggregates when that makes messages narrower; only then x may be `SparseRows`.

    Args:
        in_size: width of the input.
        out_size: width of the output.
    """

    def __init__(self, in_size: int, out_size: int):
        super().__init__()
        self.fc_self = nn.Linear(in_size, out_size)
        self.fc_neighbour = nn.Linear(in_size, out_size, bias=False)
        self.project_first = in_size > out_size

    def forward(self, graph: EdgeList, x: Tensor) -> Tensor:
        """Returns float [number of destinations, out_size] from x, float [s, in_size]."""
        own = project(head(x, graph.num_messages.size(0)), self.fc_self.weight) + self.fc_self.bias
        if self.project_first:
            neighbours = mean_messages(graph, project(x, self.fc_neighbour.weight))
        else:
            neighbours = self.fc_neighbour(mean_messages(graph, x))
        return own + neighbours
