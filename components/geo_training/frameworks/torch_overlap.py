"""Overlaps a torch model's passes with what its steps send.

Gradients leave as the backward pass makes them, and each module's forward pass waits for that module's own
parameters only. Source: P3 (Jayarajan et al., *Priority-based Parameter Propagation*, MLSys 2019). Knows
nothing of networks.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from ..errors import UsageError
from ..synchronization.piecewise import Piecewise
from ..wire.messages import Array
from .forward_needs import ForwardNeeds
from .torch_replica import TorchReplica, spread


class TorchOverlap:
    """Hooks of one model; made once, when the policy has begun.

    The optimizer's `step` is called once for each piece, with gradients of that piece's parameters only: it
    must treat parameters one by one, as all of torch do but LBFGS. It has the options (`lr`) that it had when
    the step was taken, though a schedule may have moved them since.

    Args:
        model: the model.
        replica: of the model.
        policy: sends and awaits the pieces.
        optimizer: of the model's parameters.
    """

    def __init__(
        self, model: nn.Module, replica: TorchReplica, policy: Piecewise, optimizer: torch.optim.Optimizer
    ) -> None:
        self._policy = policy
        self._optimizer = optimizer
        self._options: list[dict[str, Any]] = []
        self._parameters = replica.by_piece()
        self._pieces = {p: index for index, piece in enumerate(self._parameters) for p in piece}
        self._names = {parameter: name for name, parameter in model.named_parameters()}
        self._ready = [0] * len(self._parameters)
        self._num_samples = 0
        own = {
            name: frozenset(self._pieces[p] for p in module.parameters(recurse=False))
            for name, module in model.named_modules()
        }
        self._needs = ForwardNeeds(own, policy.take)
        policy.step_pieces_by(self._step_piece)
        for name, module in model.named_modules():
            module.register_forward_pre_hook(partial(self._before_forward, name))
        for parameter in self._pieces:
            if parameter.requires_grad:
                parameter.register_post_accumulate_grad_hook(  # type: ignore[no-untyped-call]
                    partial(self._after_gradient, parameter)
                )
        model.register_state_dict_pre_hook(lambda *_: policy.settle())  # type: ignore[no-untyped-call]

    @contextmanager
    def sending(self, num_samples: int) -> Iterator[None]:
        """Sends gradients of the block's one backward pass as they come.

        Args:
            num_samples: samples behind the loss, which is the mean over them.
        """
        self._num_samples = num_samples
        try:
            yield
        finally:
            self._num_samples = 0

    def check_fresh(self) -> None:
        """Holds that no gradient is of weights that the last step had still to change.

        Raises:
            UsageError: one is.
        """
        for parameter, index in self._pieces.items():
            if parameter.grad is not None and index in self._policy.awaited:
                raise self._stale(parameter)

    def after_step(self) -> None:
        """Notes the optimizer's options, takes what no forward pass waits for; after the policy's step."""
        is_first = not self._options
        self._options = [
            {name: value for name, value in group.items() if name != "params"}
            for group in self._optimizer.param_groups
        ]
        self._ready = [0] * len(self._parameters)
        for parameter in self._pieces:
            parameter.grad = None
        self._needs.after_step()
        if is_first:  # a schedule asks that the optimizer has stepped when it first does
            self._policy.settle()

    def _before_forward(self, name: str, _module: nn.Module, _arguments: object) -> None:
        self._needs.before_forward(name)

    def _after_gradient(self, parameter: nn.Parameter, _same: Tensor) -> None:
        index = self._pieces[parameter]
        parameters = self._parameters[index]
        if index in self._policy.awaited:
            raise self._stale(parameter)
        if self._ready[index] == len(parameters):
            raise UsageError(
                f"parameter {self._names[parameter]} has a second gradient in a step whose first was sent, "
                "allowed: one backward pass a step"
            )
        if not self._num_samples:
            return
        self._ready[index] += 1
        if self._ready[index] == len(parameters):
            gradients = [p.grad for p in parameters if p.grad is not None]
            scaled = [(gradient * self._num_samples).reshape(-1).float() for gradient in gradients]
            values: Array = torch.cat(scaled).numpy()
            self._policy.offer(index, values, self._num_samples)

    def _step_piece(self, index: int, mean: Array) -> None:
        # Gradients of the script's own that are there already are none of this step's.
        kept = {parameter: parameter.grad for parameter in self._pieces}
        now = [dict(group) for group in self._optimizer.param_groups]
        for parameter in self._pieces:
            parameter.grad = None
        gradients = []
        for parameter in self._parameters[index]:
            parameter.grad = torch.empty_like(parameter)
            gradients.append(parameter.grad)
        spread(torch.from_numpy(mean.copy()), gradients)
        for group, options in zip(self._optimizer.param_groups, self._options, strict=True):
            group.update(options)
        self._optimizer.step()
        for group, options in zip(self._optimizer.param_groups, now, strict=True):
            group.update(options)
        for parameter, gradient in kept.items():
            parameter.grad = gradient

    def _stale(self, parameter: nn.Parameter) -> UsageError:
        return UsageError(
            f"parameter {self._names[parameter]} was used before its values of the last step had come, "
            "allowed: in the forward pass of its own module, or of one around it that does not call it"
        )
