"""What an optimizer keeps of each key, and its form in a checkpoint: arrays by flat names.

Names, with key and site percent-encoded, so that they may hold anything::

    <array>/<key>          FP32 [n]
    <scalar>/<key>         FP64 [1]
    backup/<key>/<site>    FP32 [n]
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import quote, unquote

import numpy as np

from ..._files import InputError
from .base import AnyArray, FloatArray, OptimizerSpec

_BACKUP = "backup"


@dataclass(slots=True)
class KeyState:
    """The state of one key of n values.

    Attributes:
        arrays: the spec's arrays, FP32 [n] each.
        scalars: the spec's scalars.
        backups: the weights that each site was given last, FP32 [n], by site.
    """

    arrays: dict[str, FloatArray] = field(default_factory=dict)
    scalars: dict[str, float] = field(default_factory=dict)
    backups: dict[str, FloatArray] = field(default_factory=dict)

    @classmethod
    def new(cls, spec: OptimizerSpec, count: int) -> "KeyState":
        """Returns the state before the first step."""
        return cls({name: np.zeros(count, np.float32) for name in spec.arrays()}, spec.scalars())

    def sizes(self) -> set[int]:
        """Returns the numbers of values of all arrays: one number, or none where nothing is kept."""
        return {array.size for held in (self.arrays, self.backups) for array in held.values()}


def flattened(states: Mapping[str, KeyState]) -> dict[str, AnyArray]:
    """Returns a copy of all keys' state by flat names."""
    flat: dict[str, AnyArray] = {}
    for key, state in states.items():
        flat |= {_name(slot, key): array.copy() for slot, array in state.arrays.items()}
        flat |= {_name(slot, key): np.array([scalar]) for slot, scalar in state.scalars.items()}
        flat |= {_name(_BACKUP, key, site): array.copy() for site, array in state.backups.items()}
    return flat


def unflattened(flat: Mapping[str, AnyArray], spec: OptimizerSpec) -> dict[str, KeyState]:
    """Returns the state of all keys, a copy, from what `flattened` returned.

    Raises:
        InputError: an array that the spec's state does not have, or has not as it is, or one that is missing.
    """
    states: dict[str, KeyState] = {}
    for name, array in flat.items():
        slot, *owner = _parts(name)
        state = states.setdefault(owner[0] if owner else "", KeyState())
        if slot in spec.arrays() and len(owner) == 1:
            state.arrays[slot] = _copied(name, array)
        elif slot in spec.scalars() and len(owner) == 1:
            state.scalars[slot] = _scalar(name, array)
        elif slot == _BACKUP and spec.keeps_backups() and len(owner) == 2:
            state.backups[owner[1]] = _copied(name, array)
        else:
            raise InputError(f"optimizer state holds {name!r}, allowed: {_allowed(spec)}")
    for key, state in states.items():
        _hold_complete(key, state, spec)
    return states


def _name(*parts: str) -> str:
    return "/".join(quote(part, safe="", errors="surrogatepass") for part in parts)


def _parts(name: str) -> list[str]:
    try:
        return [unquote(part, errors="surrogatepass") for part in name.split("/")]
    except UnicodeDecodeError as error:
        raise InputError(f"optimizer state holds {name!r}, allowed: percent-encoded UTF-8") from error


def _copied(name: str, array: AnyArray) -> FloatArray:
    if array.dtype != np.float32 or array.ndim != 1:
        raise InputError(
            f"optimizer state {name!r} is {array.dtype} {list(array.shape)}, allowed: float32 [n]"
        )
    return np.array(array, np.float32)


def _scalar(name: str, array: AnyArray) -> float:
    if array.dtype != np.float64 or array.shape != (1,):
        raise InputError(
            f"optimizer state {name!r} is {array.dtype} {list(array.shape)}, allowed: float64 [1]"
        )
    return float(array[0])


def _allowed(spec: OptimizerSpec) -> str:
    slots = [f"{slot}/<key>" for slot in (*spec.arrays(), *spec.scalars())]
    return ", ".join([*slots, *([f"{_BACKUP}/<key>/<site>"] if spec.keeps_backups() else [])]) or "nothing"


def _hold_complete(key: str, state: KeyState, spec: OptimizerSpec) -> None:
    missing = [name for name in spec.arrays() if name not in state.arrays]
    missing += [name for name in spec.scalars() if name not in state.scalars]
    if missing:
        raise InputError(f"optimizer state of key {key!r} has no {missing[0]!r}, allowed: {_allowed(spec)}")
    if len(state.sizes()) > 1:
        sizes = ", ".join(map(str, sorted(state.sizes())))
        raise InputError(f"optimizer state of key {key!r} holds arrays of {sizes} values, allowed: one size")
