"""The optimizer of all keys: one spec's rule, with a state a key."""

import math
from collections.abc import Mapping

import numpy as np

from ..errors import UsageError
from .base import AnyArray, Block, FloatArray, OptimizerSpec
from .key_state import KeyState, flattened, unflattened

BLOCK = 1 << 15
"""Values that are stepped at a time: with their state and temporaries they stay in a core's cache."""


class KeyedOptimizer:
    """See `Optimizer`. Beside its state it needs some temporaries of `BLOCK` values in each step.

    Args:
        spec: the options and the rule.
    """

    def __init__(self, spec: OptimizerSpec) -> None:
        self.spec = spec
        self._states: dict[str, KeyState] = {}

    def update(self, key: str, weights: FloatArray, gradient: FloatArray, site: str | None = None) -> None:
        """See `Optimizer`."""
        if gradient.dtype != np.float32 or gradient.shape != weights.shape:
            raise UsageError(
                f"gradient of {key!r} is {gradient.dtype} {list(gradient.shape)}, "
                f"needed: float32 {list(weights.shape)}"
            )
        if not weights.flags.writeable:
            raise UsageError(f"weights of {key!r} are read-only")
        state = self._state(key, weights)
        self.spec.advance(state.scalars)
        backup = None if site is None else state.backups.get(site)
        for start in range(0, weights.size, BLOCK):
            part = slice(start, start + BLOCK)
            self.spec.apply(
                Block(
                    weights=weights[part],
                    gradient=self._clipped(gradient[part]),
                    arrays={name: array[part] for name, array in state.arrays.items()},
                    scalars=state.scalars,
                    backup=None if backup is None else backup[part],
                )
            )

    def pulled(self, key: str, site: str, weights: FloatArray) -> FloatArray | None:
        """See `Optimizer`."""
        if not self.spec.keeps_backups():
            return None
        backups = self._state(key, weights).backups
        if site in backups:
            backups[site][:] = weights
        else:
            backups[site] = weights.copy()
        return backups[site]

    def state(self) -> dict[str, AnyArray]:
        """See `Optimizer`."""
        return flattened(self._states)

    def load_state(self, arrays: Mapping[str, AnyArray]) -> None:
        """See `Optimizer`."""
        self._states = unflattened(arrays, self.spec)

    def _state(self, key: str, weights: FloatArray) -> KeyState:
        if weights.dtype != np.float32 or weights.ndim != 1 or not weights.flags.c_contiguous:
            raise UsageError(
                f"weights of {key!r} are {weights.dtype} {list(weights.shape)}, "
                f"needed: float32 [n] in one piece"
            )
        state = self._states.get(key)
        if state is None:
            state = self._states.setdefault(key, KeyState.new(self.spec, weights.size))
        if not state.sizes() <= {weights.size}:
            raise UsageError(f"weights of {key!r} are {weights.size}, those before were {max(state.sizes())}")
        return state

    def _clipped(self, gradient: FloatArray) -> FloatArray:
        if math.isinf(self.spec.clip):
            return gradient
        return np.clip(gradient, -self.spec.clip, self.spec.clip)
