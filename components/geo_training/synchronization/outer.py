"""The outer optimizer: the mean change is a gradient at the root (DiLoCo; Douillard et al., 2023).

With v the velocity and d the mean change: v <- momentum * v + d; the anchor moves by rate * (momentum * v +
d), which is Nesterov's step. Rate 1 and momentum 0 move it by d, as HFA and FedAvg do, bit for bit.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..messages import Array
from ..options import SYNCHRONIZATION, Number, Options, option
from ..units import Unit


@dataclass(frozen=True, kw_only=True, slots=True)
class Outer(Options):
    """Nesterov momentum at the root, on the mean change of the weights."""

    what: ClassVar[str] = SYNCHRONIZATION
    name: ClassVar[str] = "outer"

    rate: float = option(0.7, Number(0, 10, without_low=True))
    """Share of the mean change that is taken over."""
    momentum: float = option(0.9, Number(0, 0.9999))
    """Share of the velocity that is kept."""


class Nesterov:
    """Moves the weights by mean changes.

    Args:
        options: rate and momentum.

    Attributes:
        velocity: of each unit, as many values; holds a unit from its first change on.
    """

    def __init__(self, options: Outer) -> None:
        self._rate, self._momentum = np.float32(options.rate), np.float32(options.momentum)
        self.velocity: dict[Unit, Array] = {}

    def move(self, unit: Unit, change: Array) -> Array:
        """Returns by how much the weights of a unit move.

        Args:
            unit: the unit.
            change: the mean change, float32 [unit.count].
        """
        if not self._momentum:
            return change if self._rate == 1 else self._rate * change
        velocity = self.velocity.get(unit)
        velocity = change.copy() if velocity is None else self._momentum * velocity + change
        self.velocity[unit] = velocity
        return self._rate * (self._momentum * velocity + change)
