"""The checkpoints of one node of the tree: what it keeps, where, and when the root does so by itself.

A component's workers ask all nodes for checkpoints, one an epoch; a script's tree has the root keep its own
state every so many rounds::

    <checkpoint_folder>/
      3f0c21d07a94b8e1/       one tree: the digest of its workers, synchronisation and compression
        round-200/root/       manifest.json, state.safetensors: see `state`
        round-300/root/
"""

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from ..._files.checkpoints import EPOCH, checkpoint_of, forget, last_common, new_checkpoint, usable_folder
from ..._launch import progress
from ..errors import KeepingError
from ..topology import ROOT
from ..tree_job import TreeJob
from ..wire.units import CHANGES, RoundId
from .state import STATE, State, load_into, state_of

ROUND = "round"
"""What is counted where the root keeps checkpoints by itself."""


@dataclass(frozen=True, slots=True)
class Shelf:
    """Where one process keeps its checkpoints.

    Attributes:
        folder: the training's folder.
        member: the process.
        what: what is counted.
    """

    folder: Path
    member: str
    what: str = EPOCH

    def write(self, number: int, state: State) -> None:
        """Keeps a state as a checkpoint; the third last one goes.

        Raises:
            KeepingError: it cannot be written.
        """
        try:
            with new_checkpoint(self.folder, number, self.member, self.what) as folder:
                state.write(folder / STATE)
        except OSError as error:
            raise KeepingError(f"{self.folder}: no checkpoint can be written: {error.strerror}") from error

    def read(self, number: int) -> State:
        """Reads a checkpoint.

        Raises:
            ArtifactError: it is not whole.
        """
        return State.read(checkpoint_of(self.folder, number, self.member, self.what) / STATE)


class Keeper:
    """Keeps the state of one node. Any thread may call it.

    Args:
        shelf: where.
        parts: what the node is made of, by name.
        every: rounds of a tensor between two checkpoints that the node keeps by itself; 0 keeps none so.
    """

    def __init__(self, shelf: Shelf, parts: Mapping[str, object], every: int = 0) -> None:
        self._shelf = shelf
        self._parts = parts
        self._every = every
        self._begun_at = 0
        self._lock = threading.Lock()
        self._last = 0

    def write(self, number: int, own: State) -> None:
        """Keeps what the node and its parts have.

        Args:
            number: which checkpoint it is.
            own: the node's own state.

        Raises:
            KeepingError: it cannot be written.
        """
        parts = {name: state_of(part) for name, part in self._parts.items()}
        self._shelf.write(number, State.of({"node": own, **parts}))

    def restore(self, number: int) -> State:
        """Gives the parts their state, and returns the node's own; called before any round.

        Raises:
            ValueError: the checkpoint is not whole, or of a node made otherwise.
        """
        state = self._shelf.read(number)
        self._begun_at = number
        for name, part in self._parts.items():
            load_into(part, state.part(name))
        return state.part("node")

    def last(self) -> int:
        """Returns the number of the last whole checkpoint of this node alone; 0 when there is none."""
        return last_common(self._shelf.folder, [self._shelf.member], self._shelf.what)

    def forget(self) -> None:
        """Removes the checkpoints, once nobody needs them."""
        forget(self._shelf.folder)

    def is_due(self, round_id: RoundId) -> bool:
        """Tells whether the node keeps a checkpoint by itself before a contribution to a round counts."""
        number = round_id.number
        is_one = self._every and number % self._every == 0 and round_id.unit.role in CHANGES
        return bool(is_one) and number > self._last

    def before(self, round_id: RoundId, own: Callable[[], State]) -> int | None:
        """Keeps a checkpoint where one is due.

        Where sites are in step, nothing of this round has been merged then, and all of the one before has: a
        worker begins a step when it has the results of the last.

        Args:
            round_id: to which a contribution comes.
            own: gives the node's own state.

        Returns:
            The checkpoint's number; None where none was due.
        """
        with self._lock:
            if not self.is_due(round_id):
                return None
            self._last = round_id.number
            number = self._begun_at + self._last
            self.write(number, State.of({"lasting": own(), "begun": State(facts={"at": self._begun_at})}))
            return number

    def go_on(self, number: int, own: State) -> int:
        """Goes on with checkpoints of the same course after `restore`.

        Args:
            number: of the checkpoint.
            own: what `restore` gave.

        Returns:
            The rounds before the start of this course.
        """
        self._begun_at = int(own.part("begun").facts["at"])
        self._last = number - self._begun_at
        return self._begun_at


def node_keeper(job: TreeJob, name: str, parts: Mapping[str, object]) -> Keeper | None:
    """Returns what keeps a node's state; None where the tree's job wants none of this node.

    A root that keeps checkpoints by itself keeps its policy only: sites and workers start again with it, and
    are given the weights whole.

    Args:
        job: the tree's job.
        name: the node.
        parts: what it is made of, by name; `policy` is one.

    Raises:
        InputError: nothing can be written in the folder.
    """
    if not job.checkpoint_folder or (job.checkpoint_every and name != ROOT):
        return None
    if not job.checkpoint_every:
        return Keeper(Shelf(Path(job.checkpoint_folder), job.member(name)), parts)
    kept = usable_folder(Path(job.checkpoint_folder))
    folder = kept / job.digest
    if any(kept.iterdir()) and not folder.exists():
        progress(f"begins afresh: {kept} holds no checkpoint of this tree")
    return Keeper(Shelf(folder, ROOT, ROUND), {"policy": parts["policy"]}, job.checkpoint_every)
