"""Steps that shrink with the sum of the squared gradients.

Source: Duchi, Hazan and Singer, *Adaptive Subgradient Methods for Online Learning and Stochastic
Optimization*, JMLR 2011.
"""

from dataclasses import dataclass

import numpy as np

from .base import Block, Denominator, OptimizerSpec

SQUARE_SUM = "square_sum"


@dataclass(frozen=True, kw_only=True, slots=True)
class Adagrad(OptimizerSpec):
    """h <- h + g^2; w <- w - rate g / (sqrt(h) + epsilon)."""

    epsilon: Denominator = 1e-10
    """Added to the root of the sum."""

    def arrays(self) -> tuple[str, ...]:
        """See `OptimizerSpec`."""
        return (SQUARE_SUM,)

    def apply(self, block: Block) -> None:
        """See `OptimizerSpec`."""
        weights, gradient, square_sum = block.weights, self.decayed(block), block.arrays[SQUARE_SUM]
        square_sum += gradient * gradient
        weights -= self.rate * gradient / (np.sqrt(square_sum) + self.epsilon)
