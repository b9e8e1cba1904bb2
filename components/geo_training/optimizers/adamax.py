"""Adam by the largest gradient instead of the mean square.

Source: Kingma and Ba, *Adam: A Method for Stochastic Optimization*, ICLR 2015, section 7.1.
"""

from dataclasses import dataclass

import numpy as np

from .adam import MEAN, STEPS, follow
from .base import Block, Denominator, OptimizerSpec, Positive, Share

_LARGEST = "largest"


@dataclass(frozen=True, kw_only=True, slots=True)
class Adamax(OptimizerSpec):
    """m <- beta1 m + (1 - beta1) g; u <- max(beta2 u, |g| + epsilon); w <- w - rate m / (1 - beta1^t) / u."""

    rate: Positive = 0.002
    """Step size: about the most that a weight changes in one step."""
    beta1: Share = 0.9
    """Share of the mean that is kept at each step."""
    beta2: Share = 0.999
    """Share of the largest that is kept at each step."""
    epsilon: Denominator = 1e-8
    """Added to the size of the gradient."""

    def arrays(self) -> tuple[str, ...]:
        """See `OptimizerSpec`."""
        return MEAN, _LARGEST

    def scalars(self) -> dict[str, float]:
        """See `OptimizerSpec`."""
        return {STEPS: 0.0}

    def apply(self, block: Block) -> None:
        """See `OptimizerSpec`."""
        gradient, mean, largest = self.decayed(block), block.arrays[MEAN], block.arrays[_LARGEST]
        weights = block.weights
        follow(mean, gradient, self.beta1)
        largest *= self.beta2
        np.maximum(largest, np.abs(gradient) + self.epsilon, out=largest)
        weights -= self.rate / (1 - self.beta1 ** block.scalars[STEPS]) * mean / largest
