"""Giving a model, for a while, the weights that all workers last agreed on."""

from collections.abc import Iterator
from contextlib import contextmanager

from .base import Replica, WorkerPolicy


@contextmanager
def holding_agreed(policy: WorkerPolicy, replica: Replica) -> Iterator[None]:
    """Gives the replica the agreed weights for the block, then its own again."""
    agreed = policy.agreed()
    if agreed is None:
        yield
        return
    own = replica.weights()
    replica.set_weights(agreed)
    yield
    replica.set_weights(own)
