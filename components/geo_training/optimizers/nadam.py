"""Adam with Nesterov's look ahead, under a momentum that grows with the steps.

Source: Dozat, *Incorporating Nesterov Momentum into Adam*, ICLR 2016 workshop.
"""

from dataclasses import dataclass

import numpy as np

from .adam import MEAN, MEAN_SQUARE, STEPS, Adam, follow
from .base import Block, NotNegative, Positive

_PRODUCT = "momentum_product"
_GROWTH = 0.96
"""Base of the momentum's growth, as in the source."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Nadam(Adam):
    """Adam's m and s; the step goes along a mix d of g and m.

    mu_t = beta1 (1 - 0.96^(t momentum_decay) / 2); P_t is the product of mu_1 to mu_t;
    d = (1 - mu_t) g / (1 - P_t) + mu_{t+1} m / (1 - P_{t+1});
    w <- w - rate d / (sqrt(s / (1 - beta2^t)) + epsilon).
    """

    rate: Positive = 0.002
    """Step size: about the most that a weight changes in one step."""
    momentum_decay: NotNegative = 0.004
    """How fast the momentum grows from half of beta1 to beta1."""

    def scalars(self) -> dict[str, float]:
        """See `OptimizerSpec`."""
        return {STEPS: 0.0, _PRODUCT: 1.0}

    def advance(self, scalars: dict[str, float]) -> None:
        """See `OptimizerSpec`."""
        scalars[STEPS] += 1.0
        scalars[_PRODUCT] *= self._momentum(scalars[STEPS])

    def apply(self, block: Block) -> None:
        """See `OptimizerSpec`."""
        gradient, steps, product = self.decayed(block), block.scalars[STEPS], block.scalars[_PRODUCT]
        weights, mean, mean_square = block.weights, block.arrays[MEAN], block.arrays[MEAN_SQUARE]
        follow(mean, gradient, self.beta1)
        follow(mean_square, gradient * gradient, self.beta2)
        following = self._momentum(steps + 1)
        direction = self.rate * (1 - self._momentum(steps)) / (1 - product) * gradient
        direction += self.rate * following / (1 - product * following) * mean
        weights -= direction / (np.sqrt(mean_square / (1 - self.beta2**steps)) + self.epsilon)

    def _momentum(self, steps: float) -> float:
        return self.beta1 * (1 - 0.5 * float(_GROWTH ** (steps * self.momentum_decay)))
