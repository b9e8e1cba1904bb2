"""Descent along a decaying sum of the gradients. With momentum 0 it is `sgd`, and keeps no state.

Sources: Polyak, *Some methods of speeding up the convergence of iteration methods*, 1964; Sutskever et al.,
*On the importance of initialization and momentum in deep learning*, ICML 2013; here the rate is outside of
the sum.
"""

from dataclasses import dataclass

from .base import Block, FloatArray, OptimizerSpec, Share

VELOCITY = "velocity"


@dataclass(frozen=True, kw_only=True, slots=True)
class Momentum(OptimizerSpec):
    """v <- momentum v + g; w <- w - rate v."""

    momentum: Share = 0.9
    """Share of the earlier gradients' sum that is kept at each step."""

    def arrays(self) -> tuple[str, ...]:
        """See `OptimizerSpec`."""
        return (VELOCITY,) if self.momentum else ()

    def apply(self, block: Block) -> None:
        """See `OptimizerSpec`."""
        descend(block, self.decayed(block), self.rate, self.momentum)


def descend(block: Block, gradient: FloatArray, rate: float, momentum: float) -> None:
    """Steps a block along a gradient, with or without momentum, in place."""
    weights, direction = block.weights, gradient
    if momentum:
        direction = block.arrays[VELOCITY]
        direction *= momentum
        direction += gradient
    weights -= rate * direction
