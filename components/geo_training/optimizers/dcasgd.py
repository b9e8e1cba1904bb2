"""Descent by gradients that come late: each is corrected for the weights' move since its site got them.

The correction is the first order of the gradient's change, with lambda g^2 in the place of the Hessian's
diagonal. One backup a site tells the move; a site that was never given weights is taken to be up to date.
With one site, or with lambda 0, it is `sgd`, or `momentum`.

Source: Zheng et al., *Asynchronous Stochastic Gradient Descent with Delay Compensation*, ICML 2017: its
constant lambda (0.04 there) and its adaptive one (2 there). The paper has no momentum and no weight decay;
here they act on the corrected gradient.
"""

from dataclasses import dataclass

import numpy as np

from .adam import MEAN_SQUARE, follow
from .base import Block, Denominator, FloatArray, NotNegative, OptimizerSpec, Share
from .momentum import VELOCITY, descend


@dataclass(frozen=True, kw_only=True, slots=True)
class Dcasgd(OptimizerSpec):
    """c = g + lambda g^2 (w - backup of the site); v <- momentum v + c; w <- w - rate v.

    Adaptive: s <- decay s + (1 - decay) g^2, and lambda / sqrt(s + epsilon) in the place of lambda.
    """

    momentum: Share = 0.0
    """Share of the earlier corrected gradients' sum that is kept at each step."""
    lambda_: NotNegative = 0.04
    """Strength of the correction; 0 for none."""
    adaptive: bool = False
    """Whether lambda is divided by the root of the gradient's mean square."""
    decay: Share = 0.95
    """Adaptive: share of the mean square that is kept at each step."""
    epsilon: Denominator = 1e-7
    """Adaptive: added to the mean square."""

    def arrays(self) -> tuple[str, ...]:
        """See `OptimizerSpec`."""
        return (
            *((VELOCITY,) if self.momentum else ()),
            *((MEAN_SQUARE,) if self.adaptive and self.lambda_ else ()),
        )

    def keeps_backups(self) -> bool:
        """See `OptimizerSpec`."""
        return self.lambda_ > 0

    def apply(self, block: Block) -> None:
        """See `OptimizerSpec`."""
        gradient = self._corrected(block) if self.lambda_ else block.gradient
        if self.weight_decay:
            gradient = gradient + self.weight_decay * block.weights
        descend(block, gradient, self.rate, self.momentum)

    def _corrected(self, block: Block) -> FloatArray:
        gradient = block.gradient
        if self.adaptive:
            follow(block.arrays[MEAN_SQUARE], gradient * gradient, self.decay)
        if block.backup is None:
            return gradient
        # In this order a site without delay gets exactly zero, also where the square of a gradient overflows.
        correction: FloatArray = (block.weights - block.backup) * gradient
        correction *= gradient
        correction *= self.lambda_
        if self.adaptive:
            correction /= np.sqrt(block.arrays[MEAN_SQUARE] + self.epsilon)
        correction += gradient
        return correction
