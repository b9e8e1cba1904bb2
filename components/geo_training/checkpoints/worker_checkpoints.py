"""A worker's checkpoints, which it keeps together with all others and with the nodes of the tree.

Every worker writes its own, then all ask the nodes for theirs, which keep them before they answer. So a
checkpoint that is whole at all of them is of one moment. Knows nothing of frameworks.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..._files.checkpoints import checkpoint_of, new_checkpoint
from ..synchronization.base import CHECKPOINT
from ..tree_job import TreeJob
from ..wire.units import Unit, at_shard
from ..workers.plane import Layout, Plane
from .state import State

_NUMBER = Layout.of([("number", 1)])


@dataclass(frozen=True, kw_only=True, slots=True)
class Pace:
    """Which epochs have a checkpoint."""

    every: int
    """Every how many-th has one."""
    epochs: int
    """The last epoch, which has one too."""

    def due(self, epoch: int) -> bool:
        """Tells whether an epoch has one."""
        return epoch % self.every == 0 or epoch == self.epochs


def keep_at_nodes(plane: Plane, number: int) -> None:
    """Has all nodes keep theirs, every root and then the sites with the first; all workers call it.

    Raises:
        GeoError: the round was given up.
    """
    for root in reversed(range(plane.num_roots)):
        plane.first(CHECKPOINT, _NUMBER, np.array([float(number)]), at_shard(plane.members.scope, root))


class WorkerShelf:
    """Where one worker keeps its checkpoints.

    Args:
        job: the tree's job.
        plane: what joins the worker to all others; its rounds may wait as long as epochs differ.
        pace: which epochs have one.
    """

    def __init__(self, job: TreeJob, plane: Plane, pace: Pace) -> None:
        self._folder = Path(job.checkpoint_folder) if job.checkpoint_folder else None
        self._member = job.member(plane.members.name)
        self._plane = plane
        self._pace = pace
        self._resume = job.resume
        self._run = job.run_id
        self._comes_back = job.comes_back

    @property
    def kept(self) -> Path | None:
        """The folder of the checkpoint to go on from; None to begin afresh."""
        if self._folder is None or not self._resume:
            return None
        return checkpoint_of(self._folder, self._resume, self._member)

    def due(self, epoch: int) -> bool:
        """Tells whether a checkpoint is to be kept after an epoch."""
        return self._folder is not None and self._pace.due(epoch)

    def place(self) -> State:
        """Returns where the rounds of this run stand, for who comes back in it."""
        numbers = [
            [scope, unit.to_list(), number] for (scope, unit), number in self._plane.client.numbers.items()
        ]
        return State(facts={"run": self._run, "numbers": numbers})

    def take_place(self, place: State) -> bool:
        """Goes on with the rounds after a checkpoint, where the others live on since.

        In a checkpoint of an earlier run the others have begun this one from it, and have no rounds before.
        Else the nodes are asked for the checkpoint once more: they may not have heard of it.

        Args:
            place: what `place` gave before the checkpoint was whole.

        Returns:
            Whether the others live on since.

        Raises:
            GeoError: the round was given up.
        """
        if not self._comes_back or place.facts.get("run") != self._run:
            return False
        for scope, unit, number in place.facts["numbers"]:
            self._plane.client.skip(scope, Unit(*unit), number + 1)
        keep_at_nodes(self._plane, self._resume)
        return True

    @contextmanager
    def new(self, epoch: int) -> Iterator[Path]:
        """Yields a folder to write this worker's state to; all nodes have kept theirs after the block.

        Raises:
            GeoError: the round was given up.
        """
        assert self._folder is not None  # else none is due
        with new_checkpoint(self._folder, epoch, self._member) as folder:
            yield folder
        keep_at_nodes(self._plane, epoch)
