"""When workers exchange, what, and what the tree makes of it: one policy a file, chosen by name."""

from collections.abc import Mapping

from .._names import chosen
from .base import Average, NodePolicy, Synchronization, WorkerPolicy
from .fsa import FullAtNode, FullAtWorker

__all__ = [
    "SYNCHRONIZATIONS",
    "Average",
    "NodePolicy",
    "Synchronization",
    "WorkerPolicy",
    "synchronization",
]

SYNCHRONIZATIONS: Mapping[str, Synchronization] = {
    "fsa": Synchronization(node=FullAtNode, worker=FullAtWorker),
}


def synchronization(name: str) -> Synchronization:
    """Returns the policy of that name.

    Raises:
        InputError: there is none of that name.
    """
    return chosen(SYNCHRONIZATIONS, "synchronization", name)
