"""Tensors whose weights a root holds, from the first weights of all workers or from a checkpoint."""

from collections.abc import Mapping
from typing import Protocol

from ..errors import ProtocolError
from ..wire.messages import Array
from ..wire.units import Unit


class Held(Protocol):
    """What is held of one tensor.

    Attributes:
        weights: float32 [n].
        is_loaded: whether they are of a checkpoint, and no worker has been given them.
    """

    weights: Array
    is_loaded: bool


def loaded_weights(tensors: Mapping[Unit, Held], tensor: Unit) -> Array | None:
    """Returns a copy of a tensor's loaded weights, the first time; None where they are not of a checkpoint.

    Raises:
        ProtocolError: a checkpoint was loaded, which has no such tensor.
    """
    held = tensors.get(tensor)
    if held is not None and held.is_loaded:
        held.is_loaded = False
        return held.weights.copy()
    if held is None and any(each.is_loaded for each in tensors.values()):
        raise ProtocolError(f"the checkpoint has no weights of {tensor.place}: it is of another model")
    return None


def missing_weights(tensor: Unit) -> ProtocolError:
    """Returns what is wrong where a tensor is used whose weights have not come."""
    return ProtocolError(f"the root has no weights of {tensor.place}, which come first")
