"""Follow the moving leader: the leader of recent steps, where FTRL follows that of all.

Source: Zheng and Kwok, *Follow the Moving Leader in Deep Learning*, ICML 2017.
"""

from dataclasses import dataclass

import numpy as np

from .adam import MEAN_SQUARE, STEPS, follow
from .base import Block, Denominator, OptimizerSpec, Share
from .ftrl import DUAL

_SCALE = "scale"


@dataclass(frozen=True, kw_only=True, slots=True)
class Ftml(OptimizerSpec):
    """s <- beta2 s + (1 - beta2) g^2; e = (1 - beta1^t) / rate (sqrt(s / (1 - beta2^t)) + epsilon).

    z <- beta1 z + (1 - beta1) g - (e - beta1 d) w; d <- e; w <- -z / d.
    """

    beta1: Share = 0.6
    """Share of the earlier steps that is kept at each step."""
    beta2: Share = 0.999
    """Share of the mean square that is kept at each step."""
    epsilon: Denominator = 1e-8
    """Added to the root of the mean square."""

    def arrays(self) -> tuple[str, ...]:
        """See `OptimizerSpec`."""
        return DUAL, _SCALE, MEAN_SQUARE

    def scalars(self) -> dict[str, float]:
        """See `OptimizerSpec`."""
        return {STEPS: 0.0}

    def apply(self, block: Block) -> None:
        """See `OptimizerSpec`."""
        gradient, steps, weights = self.decayed(block), block.scalars[STEPS], block.weights
        dual, scale, mean_square = (block.arrays[name] for name in self.arrays())
        follow(mean_square, gradient * gradient, self.beta2)
        root = np.sqrt(mean_square / (1 - self.beta2**steps))
        grown = (1 - self.beta1**steps) / self.rate * (root + self.epsilon)
        follow(dual, gradient, self.beta1)
        dual -= (grown - self.beta1 * scale) * weights
        scale[:] = grown
        np.divide(dual, -grown, out=weights)
