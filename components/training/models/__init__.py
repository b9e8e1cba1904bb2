"""The built-in architectures, by name. Knows nothing of training, parts or files."""

from collections.abc import Callable
from itertools import pairwise

from torch import nn

from ..._files import InputError
from .gat import GatLayer
from .gcn import GcnLayer
from .sage import SageLayer
from .stack import PlainStack, Stack

__all__ = ["ARCHITECTURES", "PlainStack", "Stack", "build", "plain"]


def _sizes(num_features: int, num_classes: int, hidden_size: int, num_layers: int) -> list[tuple[int, int]]:
    return list(pairwise([num_features, *[hidden_size] * (num_layers - 1), num_classes]))


def _sage(sizes: list[tuple[int, int]]) -> list[nn.Module]:
    return [SageLayer(into, out) for into, out in sizes]


def _gcn(sizes: list[tuple[int, int]]) -> list[nn.Module]:
    return [GcnLayer(into, out) for into, out in sizes]


def _gat(sizes: list[tuple[int, int]], num_heads: int = 8) -> list[nn.Module]:
    for _, out in sizes[:-1]:
        if out % num_heads:
            raise InputError(f"hidden_size {out} must be a multiple of num_heads ({num_heads})")
    last = len(sizes) - 1
    return [
        GatLayer(into, out, num_heads=num_heads, join=index < last) for index, (into, out) in enumerate(sizes)
    ]


ARCHITECTURES: dict[str, Callable[..., list[nn.Module]]] = {"sage": _sage, "gcn": _gcn, "gat": _gat}
_OPTIONS = ("hidden_size", "num_layers", "dropout", "input_dropout")
_OWN_OPTIONS: dict[str, tuple[str, ...]] = {"sage": (), "gcn": (), "gat": ("num_heads",)}
_ACTIVATIONS = {"sage": "relu", "gcn": "relu", "gat": "elu"}


def build(
    architecture: str,
    num_features: int,
    num_classes: int,
    *,
    hidden_size: int = 64,
    num_layers: int = 2,
    **options: float,
) -> Stack:
    """Builds a GNN with fresh weights, drawn from torch's global generator.

    Args:
        architecture: `sage`, `gcn` or `gat`.
        num_features: width of the node features.
        num_classes: number of classes.
        hidden_size: width of the inner layers.
        num_layers: number of layers, each one hop.
        **options: `dropout` before every layer but the first (0.5), `input_dropout` on the features (0.5),
            and `num_heads` of `gat` (8).

    Returns:
        A model with `forward(blocks, x)`.

    Raises:
        InputError: an architecture or option that does not exist.
    """
    if architecture not in ARCHITECTURES:
        raise InputError(f"architecture {architecture!r}: allowed are {', '.join(sorted(ARCHITECTURES))}")
    own = _OWN_OPTIONS[architecture]
    for name in options:
        if name not in (*_OPTIONS, *own):
            raise InputError(f"model option {name!r}: {architecture} allows {', '.join((*_OPTIONS, *own))}")
    sizes = _sizes(num_features, num_classes, int(hidden_size), int(num_layers))
    layers = ARCHITECTURES[architecture](
        sizes, **{name: int(options[name]) for name in own if name in options}
    )
    return Stack(
        layers,
        [out for _, out in sizes],
        activation=_ACTIVATIONS[architecture],
        dropout=float(options.get("dropout", 0.5)),
        input_dropout=float(options.get("input_dropout", 0.5)),
    )


def plain(model: nn.Module) -> PlainStack:
    """Returns the same model over plain tensors: `forward(x, edge_index)`, without DGL.

    Raises:
        InputError: the model is not one of the built-in architectures.
    """
    if not isinstance(model, Stack):
        raise InputError(f"{type(model).__name__} is not a built-in architecture: it has no form without DGL")
    return PlainStack(model)
