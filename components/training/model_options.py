"""Options of the built-in architectures, beside those that all of them have. Loads no torch."""

from collections.abc import Mapping
from numbers import Real
from typing import Any

from .._files import InputError

MODEL_OPTIONS: dict[str, tuple[str, ...]] = {
    "sage": ("input_dropout",),
    "gcn": ("input_dropout",),
    "gat": ("input_dropout", "num_heads"),
}
"""What `model_options` may hold, by architecture."""
DEFAULT_HEADS = 8
"""Heads of `gat` where none are given."""


def check_model_options(
    architecture: str, options: Mapping[str, Any], *, hidden_size: int, num_layers: int
) -> None:
    """Checks the options of a built-in architecture before anything is built.

    Args:
        architecture: one of `MODEL_OPTIONS`.
        options: what the user gave; whole numbers may come as floats.
        hidden_size: width of the inner layers, which the heads of `gat` share.
        num_layers: number of layers.

    Raises:
        InputError: an option that the architecture has not, or a value that is not allowed.
    """
    allowed = MODEL_OPTIONS[architecture]
    for name in options:
        if name not in allowed:
            raise InputError(f"model_options has {name!r}; allowed with {architecture}: {', '.join(allowed)}")
    dropout = options.get("input_dropout", 0.0)
    if not is_number(dropout) or not 0 <= dropout < 1:
        raise InputError(f"model_options: input_dropout is {dropout!r}; allowed: at least 0 and below 1")
    if architecture != "gat":
        return
    heads = options.get("num_heads", DEFAULT_HEADS)
    if not is_whole(heads) or heads < 1:
        raise InputError(f"model_options: num_heads is {heads!r}; allowed: a whole number from 1 on")
    if num_layers > 1 and hidden_size % heads:
        raise InputError(f"hidden_size is {hidden_size}; allowed with gat: a multiple of num_heads ({heads})")


def is_number(value: object) -> bool:
    """Tells whether a value of a list or mapping is a number, which a truth value is not."""
    return isinstance(value, Real) and not isinstance(value, bool)


def is_whole(value: object) -> bool:
    """Tells whether it is a whole number; KFP hands those inside lists and mappings over as floats."""
    return is_number(value) and float(value).is_integer()  # type: ignore[arg-type]
