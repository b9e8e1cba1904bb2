"""The outer optimizer: the mean change is a gradient at the root (DiLoCo; Douillard et al., 2023).

With v the velocity and d the mean change: v <- momentum * v + d; the anchor moves by rate * (momentum * v +
d), which is Nesterov's step. Rate 1 and momentum 0 move it by d, as HFA and FedAvg do, bit for bit.
"""

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from ..messages import Array
from ..spec import Interval, check
from ..units import Unit


@dataclass(frozen=True, kw_only=True, slots=True)
class Outer:
    """Nesterov momentum at the root, on the mean change of the weights.

    Raises:
        InputError: a value that is not allowed; names the option, the value and what is.
    """

    rate: Annotated[float, Interval(low=0, high=10, with_low=False)] = 0.7
    """Share of the mean change that is taken over."""
    momentum: Annotated[float, Interval(low=0, high=1, with_high=False)] = 0.9
    """Share of the velocity that is kept."""

    def __post_init__(self) -> None:
        """Checks the values."""
        check(self)


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
