"""Steps scaled by the running mean square of the gradient.

Sources: Tieleman and Hinton, *Lecture 6.5: RMSProp*, Coursera 2012; centered: Graves, *Generating Sequences
With Recurrent Neural Networks*, 2013.
"""

from dataclasses import dataclass

import numpy as np

from .adam import MEAN, MEAN_SQUARE, follow
from .base import Block, Denominator, FloatArray, OptimizerSpec, Positive, Share
from .momentum import VELOCITY, descend


@dataclass(frozen=True, kw_only=True, slots=True)
class Rmsprop(OptimizerSpec):
    """s <- decay s + (1 - decay) g^2; v <- momentum v + g / (sqrt(s) + epsilon); w <- w - rate v.

    Centered: m <- decay m + (1 - decay) g, and s - m^2 in the place of s under the root.
    """

    rate: Positive = 0.001
    """Step size."""
    decay: Share = 0.9
    """Share of the means that is kept at each step."""
    epsilon: Denominator = 1e-8
    """Added to the root."""
    momentum: Share = 0.0
    """Share of the earlier scaled gradients' sum that is kept at each step."""
    centered: bool = False
    """Whether the gradient's own mean is taken off its mean square."""

    def arrays(self) -> tuple[str, ...]:
        """See `OptimizerSpec`."""
        return (
            MEAN_SQUARE,
            *((MEAN,) if self.centered else ()),
            *((VELOCITY,) if self.momentum else ()),
        )

    def apply(self, block: Block) -> None:
        """See `OptimizerSpec`."""
        gradient = self.decayed(block)
        follow(block.arrays[MEAN_SQUARE], gradient * gradient, self.decay)
        scaled = gradient / (np.sqrt(self._spread(block, gradient)) + self.epsilon)
        descend(block, scaled, self.rate, self.momentum)

    def _spread(self, block: Block, gradient: FloatArray) -> FloatArray:
        if not self.centered:
            return block.arrays[MEAN_SQUARE]
        mean = block.arrays[MEAN]
        follow(mean, gradient, self.decay)
        variance: FloatArray = block.arrays[MEAN_SQUARE] - mean * mean
        # Rounding takes the variance of a gradient that hardly changes below zero.
        return np.maximum(variance, 0.0, out=variance)
