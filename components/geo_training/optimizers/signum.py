"""Steps of one size along the sign of a running mean of the gradient; with momentum 0 of the gradient itself.

Source: Bernstein et al., *signSGD: Compressed Optimisation for Non-Convex Problems*, ICML 2018.
"""

from dataclasses import dataclass

import numpy as np

from .adam import MEAN, follow
from .base import Block, OptimizerSpec, Share


@dataclass(frozen=True, kw_only=True, slots=True)
class Signum(OptimizerSpec):
    """m <- momentum m + (1 - momentum) g; w <- w - rate sign(m)."""

    momentum: Share = 0.9
    """Share of the mean that is kept at each step."""

    def arrays(self) -> tuple[str, ...]:
        """See `OptimizerSpec`."""
        return (MEAN,) if self.momentum else ()

    def apply(self, block: Block) -> None:
        """See `OptimizerSpec`."""
        weights, direction = block.weights, self.decayed(block)
        if self.momentum:
            follow(block.arrays[MEAN], direction, self.momentum)
            direction = block.arrays[MEAN]
        weights -= self.rate * np.sign(direction)
