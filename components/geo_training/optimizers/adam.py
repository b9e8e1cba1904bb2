"""Steps scaled by running means of the gradient and its square.

Source: Kingma and Ba, *Adam: A Method for Stochastic Optimization*, ICLR 2015.
"""

import math
from dataclasses import dataclass

import numpy as np

from .base import Block, Denominator, FloatArray, OptimizerSpec, Positive, Share

MEAN, MEAN_SQUARE, STEPS = "mean", "mean_square", "steps"


@dataclass(frozen=True, kw_only=True, slots=True)
class Adam(OptimizerSpec):
    """m <- beta1 m + (1 - beta1) g; s <- beta2 s + (1 - beta2) g^2; the step goes along unbiased m / sqrt(s).

    In step t: w <- w - rate m / (1 - beta1^t) / (sqrt(s / (1 - beta2^t)) + epsilon).
    """

    rate: Positive = 0.001
    """Step size: about the most that a weight changes in one step."""
    beta1: Share = 0.9
    """Share of the mean that is kept at each step."""
    beta2: Share = 0.999
    """Share of the mean square that is kept at each step."""
    epsilon: Denominator = 1e-8
    """Added to the root of the mean square."""

    def arrays(self) -> tuple[str, ...]:
        """See `OptimizerSpec`."""
        return MEAN, MEAN_SQUARE

    def scalars(self) -> dict[str, float]:
        """See `OptimizerSpec`."""
        return {STEPS: 0.0}

    def apply(self, block: Block) -> None:
        """See `OptimizerSpec`."""
        gradient, steps = self.decayed(block), block.scalars[STEPS]
        weights, mean, mean_square = block.weights, block.arrays[MEAN], block.arrays[MEAN_SQUARE]
        follow(mean, gradient, self.beta1)
        follow(mean_square, gradient * gradient, self.beta2)
        root = np.sqrt(mean_square)
        root *= 1 / math.sqrt(1 - self.beta2**steps)
        root += self.epsilon
        weights -= self.rate / (1 - self.beta1**steps) * mean / root


def follow(mean: FloatArray, value: FloatArray, kept: float) -> None:
    """Moves a running mean [n] towards a value [n], in place: kept mean + (1 - kept) value."""
    mean *= kept
    mean += (1 - kept) * value
