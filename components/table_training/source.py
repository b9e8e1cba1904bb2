"""How a model, its loss and its optimizer are built: by the user's function or a built-in algorithm.

The framework is what the model is. Imports neither torch nor MXNet before something is built.
"""

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .._files import InputError

TORCH, MXNET = "torch", "mxnet"


@dataclass(frozen=True, kw_only=True, slots=True)
class Built:
    """What `build` returned, checked."""

    framework: str
    """`torch` or `mxnet`."""
    model: Any
    """An `nn.Module`, or a gluon `HybridBlock`."""
    loss: Any
    """Called with outputs and labels; torch: gives the mean, gluon: one value a row."""
    optimizer: Any
    """A `torch.optim.Optimizer` over the model's parameters, or an `mx.optimizer.Optimizer`."""


@dataclass(frozen=True, kw_only=True)
class ModelSource:
    """How a model is built, but for its weights."""

    entry_point: str = ""
    """`module:function` of the user's own `build`, or empty."""
    algorithm: str = ""
    """A built-in algorithm, or empty."""
    hyperparameters: Mapping[str, Any] = field(default_factory=dict)
    """Further arguments of `build`."""
    feature_shape: tuple[int, ...]
    """Shape of a row's features."""
    num_classes: int
    """Number of classes; 0 for regression."""
    user_code: Path | None = None
    """Folder with the user's code, or None."""

    def build(self) -> Built:
        """Builds model, loss and optimizer; fresh weights come from the global generators.

        Raises:
            InputError: the code cannot be imported, `build` raises, or returns what cannot be trained.
        """
        if self.entry_point:
            return self._build_by_user()
        from .algorithms import build

        model, loss, optimizer = build(
            self.algorithm, self.feature_shape, self.num_classes, self.hyperparameters
        )
        return Built(framework=TORCH, model=model, loss=loss, optimizer=optimizer)

    def _build_by_user(self) -> Built:
        from ..training.user_code import load_builder, raising_input_error

        builder = load_builder(self.entry_point, self.user_code)
        with raising_input_error(self.entry_point, self.user_code):
            returned = builder(self.feature_shape, self.num_classes, **self.hyperparameters)
        if not isinstance(returned, tuple | list) or len(returned) != 3:
            raise self.refused(f"returned {_kind(returned)}, (model, loss, optimizer) is needed")
        model, loss, optimizer = returned
        if not callable(loss):
            raise self.refused(f"the loss is of type {_kind(loss)}, one that can be called is needed")
        return Built(framework=self._framework(model, optimizer), model=model, loss=loss, optimizer=optimizer)

    def _framework(self, model: Any, optimizer: Any) -> str:
        """Returns the framework of a model, whose library is loaded by now, as the model exists."""
        torch, mxnet = sys.modules.get(TORCH), sys.modules.get(MXNET)
        if torch is not None and isinstance(model, torch.nn.Module):
            self._check_torch_optimizer(model, optimizer)
            return TORCH
        if mxnet is not None and isinstance(model, mxnet.gluon.HybridBlock):
            if not isinstance(optimizer, mxnet.optimizer.Optimizer):
                raise self.refused(
                    f"the optimizer is of type {_kind(optimizer)}, an mx.optimizer.Optimizer is needed"
                )
            return MXNET
        raise self.refused(
            f"the model is of type {_kind(model)}, a torch nn.Module or a gluon HybridBlock is needed"
        )

    def _check_torch_optimizer(self, model: Any, optimizer: Any) -> None:
        from torch.optim import Optimizer

        if not isinstance(optimizer, Optimizer):
            raise self.refused(
                f"the optimizer is of type {_kind(optimizer)}, a torch.optim.Optimizer is needed"
            )
        own = {id(parameter) for parameter in model.parameters()}
        if any(id(each) not in own for group in optimizer.param_groups for each in group["params"]):
            raise self.refused("the optimizer has parameters that are not the model's")

    def refused(self, why: str) -> InputError:
        """Returns what tells that the model cannot be used, naming where it is from."""
        named = f"entry_point {self.entry_point!r}" if self.entry_point else f"algorithm {self.algorithm!r}"
        return InputError(f"{named}: {why}")


def _kind(value: object) -> str:
    return type(value).__name__
