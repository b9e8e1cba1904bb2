"""Steps in the size of the earlier ones.

Source: Zeiler, *ADADELTA: An Adaptive Learning Rate Method*, 2012.
"""

from dataclasses import dataclass

import numpy as np

from .adam import MEAN_SQUARE, follow
from .base import Block, Denominator, OptimizerSpec, Positive, Share

_MEAN_SQUARE_STEP = "mean_square_step"


@dataclass(frozen=True, kw_only=True, slots=True)
class Adadelta(OptimizerSpec):
    """s <- decay s + (1 - decay) g^2; d = g sqrt(u + epsilon) / sqrt(s + epsilon); w <- w - rate d.

    Then u <- decay u + (1 - decay) d^2.
    """

    rate: Positive = 1.0
    """Multiplies the step; 1 in the source."""
    decay: Share = 0.9
    """Share of the mean squares that is kept at each step."""
    epsilon: Denominator = 1e-6
    """Added under both roots; sets the size of the first steps."""

    def arrays(self) -> tuple[str, ...]:
        """See `OptimizerSpec`."""
        return MEAN_SQUARE, _MEAN_SQUARE_STEP

    def apply(self, block: Block) -> None:
        """See `OptimizerSpec`."""
        weights, gradient = block.weights, self.decayed(block)
        mean_square, of_step = block.arrays[MEAN_SQUARE], block.arrays[_MEAN_SQUARE_STEP]
        follow(mean_square, gradient * gradient, self.decay)
        step = np.sqrt(of_step + self.epsilon) / np.sqrt(mean_square + self.epsilon) * gradient
        weights -= self.rate * step
        follow(of_step, step * step, self.decay)
