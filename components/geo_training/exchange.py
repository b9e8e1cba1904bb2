"""Joins the workers of a training by the tree of aggregators, behind training's own `Exchange`.

Knows nothing of sockets; the policy says what is exchanged, and when.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch
from torch import nn

from .messages import Array
from .plane import Layout, Plane
from .synchronization import WorkerPolicy
from .synchronization.base import WEIGHTS
from .torch_replica import TorchReplica

BUFFERS = "buffers"
"""Role of the first buffers."""


class GeoExchange:
    """See `Exchange`; over the workers of all sites, or of one.

    Args:
        plane: what joins the workers.
        policy: what is exchanged, and when.
        optimizer: the worker's; None until the first step names it.
    """

    def __init__(
        self, plane: Plane, policy: WorkerPolicy, optimizer: torch.optim.Optimizer | None = None
    ) -> None:
        self.index = plane.index
        self.size = plane.size
        self._plane = plane
        self._policy = policy
        self._replica: TorchReplica
        self._optimizer = optimizer

    def broadcast(self, model: nn.Module) -> None:
        """See `Exchange`; only the first worker's weights travel up."""
        self._replica = TorchReplica(model)
        self._replica.set_weights(self._first(WEIGHTS, self._replica.layout, self._replica.weights()))
        by_dtype: dict[torch.dtype, list[torch.Tensor]] = {}
        for buffer in model.buffers():
            by_dtype.setdefault(buffer.dtype, []).append(buffer)
        for dtype, buffers in sorted(by_dtype.items(), key=str):
            flat = torch.cat([buffer.detach().flatten() for buffer in buffers]).numpy()
            layout = Layout.of([(str(dtype), flat.size)])
            _unflatten(torch.from_numpy(self._first(BUFFERS, layout, flat).copy()), buffers)
        self._policy.begin(self._replica, self._plane, self._update)

    def step(self, model: nn.Module, optimizer: torch.optim.Optimizer, num_samples: int) -> None:  # noqa: ARG002
        """See `Exchange`; what the workers exchange, and when, the policy says."""
        self._optimizer = optimizer
        self._policy.step(self._replica.gradient() if num_samples else None, num_samples)

    @contextmanager
    def agreed(self, model: nn.Module) -> Iterator[None]:  # noqa: ARG002
        """See `Exchange`."""
        agreed = self._policy.agreed()
        if agreed is None:
            yield
            return
        own = self._replica.weights()
        self._replica.set_weights(agreed)
        yield
        self._replica.set_weights(own)

    def finish(self, model: nn.Module) -> None:  # noqa: ARG002
        """See `Exchange`."""
        self._policy.finish()

    def sum(self, values: torch.Tensor) -> torch.Tensor:
        """See `Exchange`."""
        return torch.from_numpy(self._plane.total(values.numpy()))

    def close(self) -> None:
        """See `Exchange`; the client leaves the tree."""
        self._plane.close()

    def _update(self, mean: Array) -> None:
        if self._optimizer is not None:  # else it has taken no step, and all that others took come too late
            self._replica.set_gradient(mean)
            self._optimizer.step()

    def _first(self, role: str, layout: Layout, values: Array) -> Array:
        if not layout.count:
            return np.zeros(0, np.float32)
        first = self._plane.sum(role, layout, values if self.index == 0 else None).wait()
        assert first is not None
        return first


@torch.no_grad()
def _unflatten(flat: torch.Tensor, tensors: list[torch.Tensor]) -> None:
    offset = 0
    for tensor in tensors:
        tensor.copy_(flat[offset : offset + tensor.numel()].reshape(tensor.shape))
        offset += tensor.numel()
