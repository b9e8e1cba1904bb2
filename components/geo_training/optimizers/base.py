"""What an optimizer of the root is, and what the rule of one decides. Knows nothing of rounds or networks."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from ..spec import Interval, check

FloatArray: TypeAlias = npt.NDArray[np.float32]
AnyArray: TypeAlias = npt.NDArray[Any]

Positive: TypeAlias = Annotated[float, Interval(low=0.0, high=math.inf, with_low=False, with_high=False)]
NotNegative: TypeAlias = Annotated[float, Interval(low=0.0, high=math.inf, with_high=False)]
Share: TypeAlias = Annotated[float, Interval(low=0.0, high=1.0, with_high=False)]
Denominator: TypeAlias = Annotated[float, Interval(low=1e-30, high=math.inf, with_high=False)]
"""What keeps a division finite; smaller ones could vanish in FP32."""


class Optimizer(Protocol):
    """Steps the weights that the root holds; one object for all keys, whose state is made as keys come.

    Calls for different keys may run in several threads at once; those for one key follow each other, and
    `state` and `load_state` run beside none.
    """

    def update(self, key: str, weights: FloatArray, gradient: FloatArray, site: str | None = None) -> None:
        """Steps the weights of one key, in place; called once where a gradient is complete.

        Args:
            key: the key; the same one always has as many values.
            weights: [n] in one piece.
            gradient: [n], of the loss; left as it is. Not finite values go into weights and state.
            site: the site that it comes from, where each site's is applied alone; None where they are merged.

        Raises:
            UsageError: dtype or shape is another, n is not that of the key's state, or the weights are
                read-only; nothing was changed.
        """

    def pulled(self, key: str, site: str, weights: FloatArray) -> FloatArray | None:
        """Takes note of the weights [n] that go to a site: its next gradients are computed at them.

        Called whenever a site is given weights of a key that it trains on, before its next `update`.

        Returns:
            The optimizer's own copy [n] where it keeps one, so that nobody needs a second, else None. It may
            be changed only to be given here at once.

        Raises:
            UsageError: dtype or shape is another, or n is not that of the key's state.
        """

    def state(self) -> dict[str, AnyArray]:
        """Returns a copy of all state, for a checkpoint: arrays of FP32 [n] and FP64 [1] by flat names."""

    def load_state(self, arrays: Mapping[str, AnyArray]) -> None:
        """Replaces all state by a copy of what `state` of an optimizer of the same spec returned.

        Raises:
            InputError: the spec's state has no such array, or has it otherwise, or one is missing; nothing
                was changed.
        """


@dataclass(frozen=True, slots=True)
class Block:
    """Some consecutive values of one key in one step, n of them.

    Attributes:
        weights: [n], to be changed in place.
        gradient: [n], clipped; not to be changed.
        arrays: the spec's arrays of state, each [n], to be changed in place.
        scalars: the spec's scalars, as they are in this step.
        backup: [n], the weights that the gradient was computed at; None where nobody said.
    """

    weights: FloatArray
    gradient: FloatArray
    arrays: Mapping[str, FloatArray]
    scalars: Mapping[str, float]
    backup: FloatArray | None


@dataclass(frozen=True, kw_only=True, slots=True)
class OptimizerSpec:
    """What a user chooses: the options, and the rule that they make. The state is kept elsewhere.

    Every rule works on each value alone, so that a key can be stepped block by block.

    Raises:
        InputError: a value that is not allowed; names the option, the value and what is.
    """

    rate: Positive = 0.01
    """Step size."""
    weight_decay: NotNegative = 0.0
    """L2 penalty: this times the weight is added to the gradient, after clipping."""
    clip: Annotated[float, Interval(low=0.0, with_low=False)] = math.inf
    """Each value of the gradient is held within plus or minus this."""

    def __post_init__(self) -> None:
        """Checks the values."""
        check(self)

    def arrays(self) -> tuple[str, ...]:
        """Returns the names of the state's arrays, FP32 [n] a key, zero at the start."""
        return ()

    def scalars(self) -> dict[str, float]:
        """Returns the state's scalars of a key, FP64, with their values before the first step.

        `steps` counts the key's steps.
        """
        return {}

    def keeps_backups(self) -> bool:
        """Tells whether the weights that each site was given are kept, FP32 [n] a key and site."""
        return False

    def advance(self, scalars: dict[str, float]) -> None:
        """Takes a key's scalars to the next step; called once a step, before its blocks."""
        if "steps" in scalars:
            scalars["steps"] += 1.0

    def apply(self, block: Block) -> None:
        """Steps the weights and the state of a block, in place."""
        raise NotImplementedError

    def decayed(self, block: Block) -> FloatArray:
        """Returns the block's gradient with the weight decay, [n]; not to be changed."""
        if not self.weight_decay:
            return block.gradient
        decayed: FloatArray = block.gradient + self.weight_decay * block.weights
        return decayed
