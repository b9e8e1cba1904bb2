"""A trained model as a module of plain tensors, where it has such a form.

Knows nothing of files and formats.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from ..training.message_passing import whole_graph
from ..training.models import Stack, plain
from .real_nodes import Case


class OverEdgeLists(nn.Module):
    """A model whose `forward(blocks, x)` is given plain edge lists in place of DGL blocks.

    Args:
        model: the user's model, written over `message_passing`.
        num_layers: blocks that its forward takes.
    """

    def __init__(self, model: nn.Module, num_layers: int):
        super().__init__()
        self.model = model
        self.num_layers = num_layers

    def forward(self, x: Tensor, edge_index: Tensor) -> Any:
        """Returns the logits of all nodes, float32 [n, num_classes].

        Args:
            x: float32 [n, num_features].
            edge_index: int64 [2, e], sources and destinations.
        """
        graph = whole_graph(edge_index, x.size(0))
        return self.model([graph] * self.num_layers, x)


@dataclass(frozen=True, kw_only=True)
class PlainForm:
    """`forward(x, edge_index)` without DGL, or why there is none."""

    module: nn.Module | None
    """The module, in evaluation mode; None when there is none."""
    scripts: bool = False
    """Whether TorchScript compiles its source; else it is traced."""
    reason: str = ""
    """Why there is none; one line."""


def plain_form(model: nn.Module, *, is_users: bool, num_layers: int, case: Case) -> PlainForm:
    """Finds the form of a model that needs no DGL.

    Args:
        model: with trained weights, in evaluation mode.
        is_users: whether the model is the user's own, which need not have such a form.
        num_layers: blocks that its forward takes.
        case: a graph to try the user's model on.

    Returns:
        The form; for a model over DGL's own layers, what went wrong on plain tensors.
    """
    if not is_users:
        return PlainForm(module=plain(model).eval(), scripts=True)
    module = plain(model) if isinstance(model, Stack) else OverEdgeLists(model, num_layers)
    reason = _why_not(module.eval(), case)
    return PlainForm(module=None, reason=reason) if reason else PlainForm(module=module)


def _why_not(module: nn.Module, case: Case) -> str:
    from dgl import DGLError

    try:
        with torch.no_grad():
            logits = module(case.x, case.edge_index)
    # What the user's code may raise when it meets an edge list where DGL's layers want a DGL block.
    except (ArithmeticError, AssertionError, AttributeError, LookupError) as error:
        return _reason(error)
    except (DGLError, ImportError, RuntimeError, TypeError, ValueError) as error:
        return _reason(error)
    if not isinstance(logits, Tensor) or logits.dim() != 2 or len(logits) != len(case.x):
        return "the model's forward does not return one row of logits for each destination"
    return ""


def _reason(error: Exception) -> str:
    return (
        "the model does not run on plain edge lists, as a model written over "
        f"geokfp.components.training.message_passing does ({type(error).__name__}: "
        f"{' '.join(str(error).split())})"
    )
