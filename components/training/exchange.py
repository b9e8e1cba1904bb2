"""What joins the workers of a training: weights, gradients and sums travel through one interface.

The loop (`loop.py`) knows nothing of how workers reach each other. At one site they are joined by
torch.distributed (`TorchExchange`); across sites by geo_training's aggregators, behind the same protocol.
"""

from contextlib import AbstractContextManager, nullcontext
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

    def step(self, model: nn.Module, optimizer: torch.optim.Optimizer, num_samples: int) -> None:
        """Takes one step; all workers call it in every step.

        Before the call `parameter.grad` holds the gradient of the loss SUMMED over this worker's samples. The
        optimizer steps with a mean over samples: of all workers, or only of this one where weights are
        averaged from time to time instead.

        Args:
            model: the model; its gradients may be None when `num_samples` is 0.
            optimizer: this worker's optimizer of the model's parameters.
            num_samples: samples of this worker in this step; 0 when it has run out of batches.
        """

    def agreed(self, model: nn.Module) -> AbstractContextManager[None]:
        """Gives the model, for the block, the weights that all workers last agreed on."""

    def finish(self, model: nn.Module) -> None:
        """Brings all workers to the same weights; called once, after the last step, if there was any."""

    def sum(self, values: torch.Tensor) -> torch.Tensor:
        """Returns the sum of a float64 vector over all workers, the same on each of them."""

    def close(self) -> None:
        """Leaves; called once, when the training is over or has failed."""


class SameWeights:
    """What an exchange needs not do whose workers have the same weights after every step."""

    def agreed(self, model: nn.Module) -> AbstractContextManager[None]:  # noqa: ARG002
        """See `Exchange`."""
        return nullcontext()

    def finish(self, model: nn.Module) -> None:
        """See `Exchange`."""


class LocalExchange(SameWeights):
    """The exchange of a single worker: nothing travels."""

    index = 0
    size = 1

    def broadcast(self, model: nn.Module) -> None:
        """Does nothing: worker 0 has its own weights."""

    def step(self, model: nn.Module, optimizer: torch.optim.Optimizer, num_samples: int) -> None:
        """Divides by the samples of this worker, as there is no other."""
        flat = flatten_gradients(model)
        restore_gradients(model, flat / max(num_samples, 1))
        optimizer.step()

    def sum(self, values: torch.Tensor) -> torch.Tensor:
        """Returns a copy of `values`."""
        return values.clone()

    def close(self) -> None:
        """Does nothing."""


class TorchExchange(SameWeights):
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

    def step(self, model: nn.Module, optimizer: torch.optim.Optimizer, num_samples: int) -> None:
        """See `Exchange.step`; the number of samples travels with the gradients, in the same buffer."""
        flat = torch.cat([flatten_gradients(model), torch.tensor([float(num_samples)])])
        dist.all_reduce(flat)
        restore_gradients(model, flat[:-1] / flat[-1].clamp(min=1.0))
        optimizer.step()

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
