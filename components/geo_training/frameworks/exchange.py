"""Joins the workers of a training by the tree of aggregators, behind training's own `Exchange`.

Knows nothing of sockets; the policy says what is exchanged, and when.
"""

from contextlib import AbstractContextManager, nullcontext

import torch
from torch import nn

from ..checkpoints.state import State
from ..synchronization import WorkerPolicy
from ..synchronization.agreed import holding_agreed
from ..synchronization.base import BUFFERS
from ..synchronization.piecewise import Piecewise
from ..wire.messages import Array
from ..wire.units import WEIGHTS
from ..workers.plane import Layout, Plane
from .torch_overlap import TorchOverlap
from .torch_replica import TorchReplica, spread


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
        self._overlap: TorchOverlap | None = None

    def broadcast(self, model: nn.Module) -> None:
        """See `Exchange`; only the first worker's weights travel up."""
        self._replica = TorchReplica(model)
        self._plane.place(self._replica.layout)
        self._replica.set_weights(self._plane.first(WEIGHTS, self._replica.layout, self._replica.weights()))
        by_dtype: dict[torch.dtype, list[torch.Tensor]] = {}
        for buffer in model.buffers():
            by_dtype.setdefault(buffer.dtype, []).append(buffer)
        for dtype, buffers in sorted(by_dtype.items(), key=str):
            flat = torch.cat([buffer.detach().flatten() for buffer in buffers]).numpy()
            layout = Layout.of([(str(dtype), flat.size)])
            spread(torch.from_numpy(self._plane.first(BUFFERS, layout, flat).copy()), buffers)
        self._policy.begin(self._replica, self._plane, self._update)
        if isinstance(self._policy, Piecewise) and self._optimizer is not None:
            self._overlap = TorchOverlap(model, self._replica, self._policy, self._optimizer)

    def sending(self, num_samples: int) -> AbstractContextManager[None]:
        """Lets gradients leave as the block's backward pass makes them, where `p3` is chosen.

        Args:
            num_samples: those of the step, whose mean loss the pass is of.
        """
        return nullcontext() if self._overlap is None else self._overlap.sending(num_samples)

    def step(self, model: nn.Module, optimizer: torch.optim.Optimizer, num_samples: int) -> None:  # noqa: ARG002
        """See `Exchange`; what the workers exchange, and when, the policy says."""
        self._optimizer = optimizer
        if self._overlap is not None:
            self._overlap.check_fresh()
        self._policy.step(self if num_samples else None, num_samples)
        if self._overlap is not None:
            self._overlap.after_step()
        self._plane.stepped()

    def flat(self) -> Array:
        """See `Gradient`."""
        return self._replica.gradient()

    def apply(self, num_samples: int) -> None:
        """See `Gradient`."""
        assert self._optimizer is not None  # the step has named it
        self._replica.divide_gradient(num_samples)
        self._optimizer.step()

    def agreed(self, model: nn.Module) -> AbstractContextManager[None]:  # noqa: ARG002
        """See `Exchange`."""
        return holding_agreed(self._policy, self._replica)

    def finish(self, model: nn.Module) -> None:  # noqa: ARG002
        """See `Exchange`."""
        self._policy.finish()

    def sum(self, values: torch.Tensor) -> torch.Tensor:
        """See `Exchange`."""
        return torch.from_numpy(self._plane.total(values.numpy()))

    def state(self) -> State:
        """See `Stateful`: that of the policy, which may change the model before it is read."""
        return self._policy.state()

    def load_state(self, state: State) -> None:
        """See `Stateful`; called after `broadcast`."""
        self._policy.load_state(state)

    def close(self) -> None:
        """See `Exchange`; the client leaves the tree."""
        self._plane.close()

    def _update(self, mean: Array) -> None:
        if self._optimizer is not None:  # else it has taken no step, and all that others took come too late
            self._replica.set_gradient(mean)
            self._optimizer.step()
