"""Layers in a row: over DGL blocks to train, over plain tensors to export."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from ..message_passing import BlockEdges, whole_graph
from ..sparse_rows import SparseRows


class Between(nn.Module):
    """What happens between two layers: activation, then dropout.

    Args:
        activation: `relu` or `elu`.
        dropout: share of the values that are zeroed in training.
    """

    def __init__(self, activation: str, dropout: float):
        super().__init__()
        self.elu = activation == "elu"
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        """Returns a tensor of the shape of `x`."""
        x = nn.functional.elu(x) if self.elu else torch.relu(x)
        out: Tensor = self.dropout(x)
        return out


class Stack(nn.Module):
    """A GNN whose forward takes DGL blocks, one a layer.

    Args:
        layers: modules called as `layer(graph, x)`.
        widths: width of each layer's output.
        activation: `relu` or `elu`.
        dropout: dropout before every layer but the first.
        input_dropout: dropout on the input features.
    """

    def __init__(
        self,
        layers: Sequence[nn.Module],
        widths: Sequence[int],
        *,
        activation: str,
        dropout: float,
        input_dropout: float,
    ):
        super().__init__()
        self.widths = tuple(widths)
        self.layers = nn.ModuleList(layers)
        self.enter = nn.Dropout(input_dropout)
        self.between = Between(activation, dropout)

    def forward(self, blocks: Sequence[Any], x: Tensor) -> Tensor:
        """Returns the logits of the last block's destinations.

        Args:
            blocks: one DGL block a layer, outermost first; `srcdata["in_degree"]` set.
            x: features of the first block's sources, float32 [s, num_features], or the same as `SparseRows`.

        Returns:
            Float32 [number of destinations of the last block, num_classes].
        """
        for index, block in enumerate(blocks):
            x = self.forward_layer(index, block, x)
        return x

    def _enter(self, x: Tensor) -> Tensor:
        if not isinstance(x, SparseRows):
            out: Tensor = self.enter(x)
            return out
        if not getattr(self.layers[0], "project_first", True):
            return self._enter(x.to_dense())
        return x.dropout(self.enter.p, self.training)  # type: ignore[return-value]

    def forward_layer(self, index: int, block: Any, x: Tensor) -> Tensor:
        """Runs one layer; returns float32 [number of destinations, widths[index]]."""
        x = self._enter(x) if index == 0 else self.between(x)
        out: Tensor = self.layers[index](BlockEdges(block), x)
        return out


class PlainStack(nn.Module):
    """The same GNN over a whole graph of plain tensors: scripts and exports, needs no DGL.

    Args:
        stack: the trained model; its layers are shared, not copied.
    """

    def __init__(self, stack: Stack):
        super().__init__()
        self.layers = stack.layers
        self.enter = stack.enter
        self.between = stack.between

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Returns the logits of all nodes.

        Args:
            x: float32 [n, num_features].
            edge_index: int64 [2, e], sources and destinations.

        Returns:
            Float32 [n, num_classes].
        """
        graph = whole_graph(edge_index, x.size(0))
        x = self.enter(x)
        for index, layer in enumerate(self.layers):
            if index > 0:
                x = self.between(x)
            x = layer(graph, x)
        return x
