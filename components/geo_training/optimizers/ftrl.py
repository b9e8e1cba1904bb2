"""Follow the regularized leader, each value at its own rate: weights of rare features stay exactly zero.

The weights are a function of the state, which starts at zero: those that have had no gradient are zero after
the first step, whatever they were.

Source: McMahan et al., *Ad Click Prediction: a View from the Trenches*, KDD 2013, algorithm 1.
"""

from dataclasses import dataclass

import numpy as np

from .adagrad import SQUARE_SUM
from .base import Block, Denominator, NotNegative, OptimizerSpec, Positive

DUAL = "dual"


@dataclass(frozen=True, kw_only=True, slots=True)
class Ftrl(OptimizerSpec):
    """z <- z + g - (sqrt(h + g^2) - sqrt(h)) w / rate; h <- h + g^2.

    w <- 0 where |z| <= l1, elsewhere (l1 sign(z) - z) / ((beta + sqrt(h)) / rate + weight_decay).
    """

    rate: Positive = 0.1
    """Step size of a value is rate / (beta + sqrt(h))."""
    l1: NotNegative = 0.01
    """L1 penalty. `weight_decay` is the L2 penalty, and acts in the formula of w."""
    beta: Denominator = 1.0
    """Tempers the first steps."""

    def arrays(self) -> tuple[str, ...]:
        """See `OptimizerSpec`."""
        return DUAL, SQUARE_SUM

    def apply(self, block: Block) -> None:
        """See `OptimizerSpec`."""
        weights, gradient = block.weights, block.gradient
        dual, square_sum = block.arrays[DUAL], block.arrays[SQUARE_SUM]
        root = np.sqrt(square_sum)
        square_sum += gradient * gradient
        grown = np.sqrt(square_sum)
        dual += gradient
        dual -= (grown - root) * weights / self.rate
        np.sign(dual, out=weights)
        weights *= np.maximum(np.abs(dual) - self.l1, 0.0)
        weights /= -((self.beta + grown) / self.rate + self.weight_decay)
