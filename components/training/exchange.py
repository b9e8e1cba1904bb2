"""What joins the workers of a training: weights, gradients and sums travel through one interface.

The loop (`loop.py`) knows nothing of how workers reach each other. At one site they are joined by
torch.distributed (`TorchExchange`); across sites by geo_training's aggregators, behind the same protocol.
"""

from datetime import timedelta
from typing import Protocol

import torch
import torch.distributed as dist
from torch import nn


class Exchange(Protocol):
    """The plane that joins `size` workers; this one is number `index`.

    Every worker calls the same methods in the same order, from one thread. After `close`, or after a method
    has raised, nothing may be called any more.

    Attributes:
        index: number of this worker, 0 up to but without `size`; worker 0 gives the first weights.
        size: number of workers.
    """

    index: int
    size: int

    def broadcast(self, model: nn.Module) -> None:
        """Gives all workers the parameters and buffers of worker 0; called once, before the first step."""

    def average_gradients(self, model: nn.Module, num_samples: int) -> None:
        """Replaces each gradient by the average over this step's samples; all workers call it in every step.

        Before the call `parameter.grad` holds the gradient of the loss SUMMED over this worker's samples;
        after it, the sum over all workers divided by the number of samples of all workers.

        Args:
            model: the model; its gradients may be None when `num_samples` is 0, and are set afterwards.
            num_samples: samples of this worker in this step; 0 when it has run out of batches.
        """

    def sum(self, values: torch.Tensor) -> torch.Tensor:
        """Returns the sum of a float64 vector over all workers, the same on each of them."""

    def close(self) -> None:
        """Leaves; called once, when the training is over or has failed."""


class LocalExchange:
    """The exchange of a single worker: nothing travels."""

    index = 0
    size = 1

    def broadcast(self, model: nn.Module) -> None:
        """Does nothing: worker 0 has its own weights."""

    def average_gradients(self, model: nn.Module, num_samples: int) -> None:
        """Divides by the samples of this worker, as there is no other."""
        flat = flatten_gradients(model)
        restore_gradients(model, flat / max(num_samples, 1))

    def sum(self, values: torch.Tensor) -> torch.Tensor:
        """Returns a copy of `values`."""
        return values.clone()

    def close(self) -> None:
        """Does nothing."""


class TorchExchange:
    """Joins the workers of one site by torch.distributed (gloo): one all-reduce a step, of one flat buffer.

    Args:
        address: host of worker 0.
        port: a free port on that host.
        index: number of this worker.
        size: number of workers.
        timeout_s: how long one collective may take before it raises.
    """

    def __init__(self, address: str, port: int, *, index: int, size: int, timeout_s: float):
        self.index = index
        self.size = size
        dist.init_process_group(
            "gloo",
            init_method=f"tcp://{address}:{port}",
            rank=index,
            world_size=size,
            timeout=timedelta(seconds=timeout_s),
        )

    def broadcast(self, model: nn.Module) -> None:
        """See `Exchange.broadcast`."""
        with torch.no_grad():
            for tensor in (*model.parameters(), *model.buffers()):
                dist.broadcast(tensor.data, src=0)

    def average_gradients(self, model: nn.Module, num_samples: int) -> None:
        """See `Exchange.average_gradients`; the number of samples travels in the same buffer."""
        flat = torch.cat([flatten_gradients(model), torch.tensor([float(num_samples)])])
        dist.all_reduce(flat)
        restore_gradients(model, flat[:-1] / flat[-1].clamp(min=1.0))

    def sum(self, values: torch.Tensor) -> torch.Tensor:
        """See `Exchange.sum`."""
        total = values.clone()
        dist.all_reduce(total)
        return total

    def close(self) -> None:
        """Leaves the process group."""
        dist.destroy_process_group()


def flatten_gradients(model: nn.Module) -> torch.Tensor:
    """Returns the gradients in the order of `model.parameters()` as one float32 vector; zeros where None."""
    pieces = [
        (torch.zeros_like(parameter) if parameter.grad is None else parameter.grad).detach().float().flatten()
        for parameter in model.parameters()
    ]
    return torch.cat(pieces) if pieces else torch.zeros(0)


def restore_gradients(model: nn.Module, flat: torch.Tensor) -> None:
    """Sets the gradients from a vector laid out as `flatten_gradients` lays it."""
    offset = 0
    for parameter in model.parameters():
        count = parameter.numel()
        piece = flat[offset : offset + count].reshape(parameter.shape).to(parameter.dtype)
        parameter.grad = piece.clone()
        offset += count
