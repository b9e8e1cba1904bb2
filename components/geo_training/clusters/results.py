"""How what a pod's processes leave comes back to the step, in the hand-over's `results/<pod>`."""

from collections.abc import Iterable
from pathlib import Path

from ..._launch.hand_over import HandOver


def give_back(hand_over: HandOver, work: Path, pod: str) -> None:
    """Hands over all files that a pod's processes left.

    Args:
        hand_over: the launch's.
        work: the folder that they left them in.
        pod: the pod's name.
    """
    hand_over.put_folder(work, f"results/{pod}", anew=True)


def gather(hand_over: HandOver, pods: Iterable[str], work: Path, *, only: Iterable[str]) -> None:
    """Copies what all pods handed over to one folder, as if their processes had run there.

    Args:
        hand_over: the launch's.
        pods: names of the pods.
        work: the folder.
        only: beginnings of the names that are wanted.

    Raises:
        InputError: a pod handed over nothing.
    """
    wanted = tuple(only)
    for pod in pods:
        hand_over.get_folder(f"results/{pod}", work, only=wanted)
