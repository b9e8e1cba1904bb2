"""Joins the workers of a training by the tree of aggregators, behind training's own `Exchange`.

Knows nothing of sockets; the policy says what a gradient goes through.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn

from ..training.exchange import flatten_gradients, restore_gradients
from .client import Client, Terms
from .messages import Array
from .scheduling import InOrder, Slices
from .synchronization import WorkerPolicy
from .units import TREE


@dataclass(frozen=True, kw_only=True, slots=True)
class Members:
    """Who takes part in an exchange; the same on each worker but for `name`."""

    workers: tuple[str, ...]
    """Names of the workers; the first gives the first weights."""

    name: str
    """This worker."""

    scope: str = TREE
    """`tree` joins the workers of all sites, `site` those of this site."""

    wait_s: float | None = None
    """Seconds that a round may wait for the other workers; None for the client's own."""


class GeoExchange:
    """See `Exchange`; over the workers of all sites, or of one.

    Several may use one client, one after the other.

    Args:
        client: the worker's end of the link to its site's aggregator.
        policy: what is exchanged, and when.
        members: who takes part.
        slices: how a key is cut; the same on each worker.
    """

    def __init__(
        self, client: Client, policy: WorkerPolicy, members: Members, slices: Slices | None = None
    ) -> None:
        self.index = members.workers.index(members.name)
        self.size = len(members.workers)
        self._client = client
        self._policy = policy
        self._members = members
        self._slices = slices or InOrder()

    def broadcast(self, model: nn.Module) -> None:
        """See `Exchange`; only the first worker's weights travel up, one round for each dtype."""
        tensors = [*model.parameters(), *model.buffers()]
        for dtype in sorted({tensor.dtype for tensor in tensors}, key=str):
            group = [tensor for tensor in tensors if tensor.dtype == dtype]
            flat = torch.cat([tensor.detach().flatten() for tensor in group]).numpy()
            first = self._reduce(f"weights {dtype}", flat, bring=self.index == 0, reduction="sum")
            assert first is not None
            _unflatten(torch.from_numpy(first), group)

    def average_gradients(self, model: nn.Module, num_samples: int) -> None:
        """See `Exchange`; all parameters travel as one key."""
        flat = flatten_gradients(model).numpy()

        def average(values: Array | None, samples: int) -> Array | None:
            brought = flat if values is None else values
            return self._reduce(
                "gradient", brought, bring=values is not None, reduction="mean", weight=samples
            )

        mean = self._policy.on_gradient(flat if num_samples else None, num_samples, average)
        restore_gradients(model, torch.from_numpy(np.zeros_like(flat) if mean is None else mean))

    def sum(self, values: torch.Tensor) -> torch.Tensor:
        """See `Exchange`."""
        total = self._reduce("numbers", values.numpy(), bring=True, reduction="sum")
        assert total is not None
        return torch.from_numpy(total.copy())

    def close(self) -> None:
        """See `Exchange`; the client leaves the tree."""
        self._client.close()

    def _reduce(
        self, key: str, values: Array, *, bring: bool, reduction: str, weight: int = 0
    ) -> np.ndarray[Any, np.dtype[Any]] | None:
        terms = Terms(reduction=reduction, weight=weight, wait_s=self._members.wait_s)
        pending = [
            self._client.push(
                self._client.next_round(self._members.scope, unit),
                values[unit.offset : unit.offset + unit.count] if bring else None,
                terms,
            )
            for unit in self._slices.cut(key, values.size, values.itemsize)
        ]
        parts = [self._client.wait(one).values for one in pending]
        brought = [part for part in parts if part is not None]
        if not brought:
            return None
        return brought[0] if len(brought) == 1 else np.concatenate(brought)


def _unflatten(flat: torch.Tensor, tensors: list[torch.Tensor]) -> None:
    offset = 0
    with torch.no_grad():
        for tensor in tensors:
            tensor.copy_(flat[offset : offset + tensor.numel()].reshape(tensor.shape))
            offset += tensor.numel()
