"""Momentum that looks ahead, and DiLoCo's outer optimizer, which is the same rule on sites' mean progress.

With momentum 0 it is `sgd`, and keeps no state.

Sources: Nesterov, *A method of solving a convex programming problem with convergence rate O(1/k^2)*, 1983, in
the form of Sutskever et al., ICML 2013; Douillard et al., *DiLoCo: Distributed Low-Communication Training of
Language Models*, 2023.
"""

from dataclasses import dataclass

from .base import Block, Positive
from .momentum import VELOCITY, Momentum, descend


@dataclass(frozen=True, kw_only=True, slots=True)
class Nesterov(Momentum):
    """v <- momentum v + g; w <- w - rate (g + momentum v)."""

    def apply(self, block: Block) -> None:
        """See `OptimizerSpec`."""
        gradient = self.decayed(block)
        if not self.momentum:
            descend(block, gradient, self.rate, self.momentum)
            return
        weights, velocity = block.weights, block.arrays[VELOCITY]
        velocity *= self.momentum
        velocity += gradient
        weights -= self.rate * (gradient + self.momentum * velocity)


@dataclass(frozen=True, kw_only=True, slots=True)
class Outer(Nesterov):
    """`Nesterov`; its gradient is d, the mean over sites of the shared weights less a site's after its steps.

    With rate 1 and momentum 0 the weights become w - d: the mean of the sites' weights (FedAvg, HierFAVG).
    """

    rate: Positive = 0.7
    """Step size; 1 takes the whole of the sites' mean progress."""
