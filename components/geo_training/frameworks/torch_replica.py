"""A torch model as flat vectors, for the policies; parameters are float32 on the wire."""

from collections.abc import Iterable, Sequence

import numpy as np
import torch
from torch import Tensor, nn

from ..wire.messages import Array
from ..workers.plane import SMALL, Layout


class TorchReplica:
    """See `Replica`; of the same model on each worker.

    Large parameters come first, in the model's order, then the small ones, which travel together.

    Args:
        model: the model.
    """

    def __init__(self, model: nn.Module) -> None:
        named = list(model.named_parameters())
        named.sort(key=lambda item: item[1].numel() < SMALL)
        self._parameters = [parameter for _, parameter in named]
        self.layout = Layout.of([(name, parameter.numel()) for name, parameter in named])
        measured = [(name, buffer) for name, buffer in model.named_buffers() if buffer.is_floating_point()]
        self._measured = [buffer for _, buffer in measured]
        self.statistics_layout = Layout.of([(name, buffer.numel()) for name, buffer in measured])

    def by_piece(self) -> list[list[nn.Parameter]]:
        """Returns the parameters of each piece of the layout."""
        pieces: list[list[nn.Parameter]] = [[] for _ in self.layout.pieces]
        index, offset = 0, 0
        for parameter in self._parameters:
            piece = self.layout.pieces[index]
            if offset >= piece.start + piece.count:
                index += 1
            pieces[index].append(parameter)
            offset += parameter.numel()
        return pieces

    def weights(self) -> Array:
        """See `Replica`."""
        return _flat(self._parameters)

    def set_weights(self, weights: Array) -> None:
        """See `Replica`."""
        _spread(weights, self._parameters)

    def statistics(self) -> Array:
        """See `Replica`."""
        return _flat(self._measured)

    def set_statistics(self, statistics: Array) -> None:
        """See `Replica`."""
        _spread(statistics, self._measured)

    def gradient(self) -> Array:
        """Returns the gradients, float32 [layout.count]; zeros where there are none."""
        return _flat([torch.zeros_like(p) if p.grad is None else p.grad for p in self._parameters])

    def divide_gradient(self, divisor: float) -> None:
        """Divides the gradients where there are any."""
        for parameter in self._parameters:
            if parameter.grad is not None:
                parameter.grad /= divisor

    def set_gradient(self, gradient: Array) -> None:
        """Replaces the gradients."""
        for parameter in self._parameters:
            if parameter.grad is None:
                parameter.grad = torch.empty_like(parameter)
        _spread(gradient, [parameter.grad for parameter in self._parameters if parameter.grad is not None])


def _flat(tensors: Sequence[Tensor]) -> Array:
    if not tensors:
        return np.zeros(0, np.float32)
    flat: Array = torch.cat([tensor.detach().reshape(-1).float() for tensor in tensors]).numpy()
    return flat


@torch.no_grad()
def spread(flat: Tensor, tensors: Iterable[Tensor]) -> None:
    """Copies the parts of a flat vector into tensors, one after the other."""
    offset = 0
    for tensor in tensors:
        tensor.copy_(flat[offset : offset + tensor.numel()].reshape(tensor.shape))
        offset += tensor.numel()


def _spread(flat: Array, tensors: Iterable[Tensor]) -> None:
    spread(torch.from_numpy(np.require(flat, np.float32, "W")), tensors)
