"""Stochastic gradient descent. Source: Robbins and Monro, *A Stochastic Approximation Method*, 1951."""

from dataclasses import dataclass

from .base import Block, OptimizerSpec


@dataclass(frozen=True, kw_only=True, slots=True)
class Sgd(OptimizerSpec):
    """w <- w - rate g."""

    def apply(self, block: Block) -> None:
        """See `OptimizerSpec`."""
        weights, gradient = block.weights, self.decayed(block)
        weights -= self.rate * gradient
