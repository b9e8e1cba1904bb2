"""Overlaps a gluon net's passes with what its steps send. For MXNet 1.9.1.

Gradients leave in the order in which MXNet's engine computes them, the last layer's first, and each block's
forward pass waits for that block's own parameters only. Source: P3 (Jayarajan et al., *Priority-based
Parameter Propagation*, MLSys 2019). Knows nothing of networks.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np

from ..errors import UsageError
from ..synchronization.piecewise import Piecewise
from ..wire.messages import Array
from .forward_needs import ForwardNeeds
from .mxnet_replica import MxnetReplica


class MxnetOverlap:
    """The pieces of a store's steps; made once, when the policy has begun.

    Args:
        replica: of the store's arrays.
        policy: sends and awaits the pieces.
        update: steps the arrays of some keys by their mean gradients, in their shapes.
    """

    def __init__(
        self,
        replica: MxnetReplica,
        policy: Piecewise,
        update: Callable[[Mapping[Any, Array]], None],
    ) -> None:
        self._replica = replica
        self._policy = policy
        self._update = update
        self._keys = replica.by_piece()
        self._pieces = {key: index for index, keys in enumerate(self._keys) for key in keys}
        self._needs: ForwardNeeds | None = None
        policy.step_pieces_by(self._step_piece)

    def watch(self, net: Any, key_of: Callable[[Any], Any]) -> None:
        """Lets steps go on while the net's forward passes wait for what they need.

        Args:
            net: all blocks that use the store's arrays are in it.
            key_of: returns the key of a parameter, None where the store has none of it.
        """
        blocks = dict(_named(net))
        keys = {name: [key_of(p) for p in block._reg_params.values()] for name, block in blocks.items()}
        own = {
            name: frozenset(self._pieces[key] for key in of_block if key in self._pieces)
            for name, of_block in keys.items()
        }
        self._needs = ForwardNeeds(own, self._policy.take)
        for name, block in blocks.items():
            block.register_forward_pre_hook(partial(self._before_forward, name))

    def step(self, flat_of: Callable[[Any], Array]) -> None:
        """Sends all gradients; returns at once where a net is watched, else when all have stepped.

        Args:
            flat_of: returns a key's gradient, flat float32; waits until it is computed.

        Raises:
            UsageError: the net did not use what the last step had changed.
        """
        if self._policy.awaited:
            names = [str(key) for index in sorted(self._policy.awaited) for key in self._keys[index]]
            raise UsageError(
                f"keys {', '.join(names)} are pushed again, but no block of the watched net has used their "
                "last values, allowed: a net that holds all blocks, each used in every step"
            )
        for index in reversed(range(len(self._keys))):
            self._policy.offer(index, np.concatenate([flat_of(key) for key in self._keys[index]]), 1)
        self._policy.step(None, 1)
        if self._needs is None:
            self._policy.settle()
        else:
            self._needs.after_step()

    def take(self, key: Any) -> None:
        """Waits for a key's values of the last step."""
        if key in self._pieces:
            self._policy.take(self._pieces[key])

    def _before_forward(self, name: str, block: Any, _inputs: object) -> None:
        assert self._needs is not None  # it is watched
        self._needs.before_forward(name, is_whole=bool(getattr(block, "_active", False)))

    def _step_piece(self, index: int, mean: Array) -> None:
        self._update(dict(self._replica.cut_keys(mean, self._keys[index])))


def _named(block: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    yield name, block
    for child_name, child in block._children.items():
        yield from _named(child, f"{name}.{child_name}".lstrip("."))
