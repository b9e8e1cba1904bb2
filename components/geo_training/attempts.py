"""Attempts at one training: from its checkpoints, and once more where the root was killed in the middle."""

import re
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from .._files.checkpoints import forget, forget_after, last_common, usable_folder
from .._launch import Job, ProcessFailed, progress, run_job
from .._launch.restarts import Restarting
from .topology import ROOT
from .tree_job import TreeJob

RESTARTS = 2
"""How often a training whose root or a pod was killed goes on by itself, from the last checkpoint."""
ROOT_REPLICA = f"{ROOT}/aggregator"
"""Name of the root's process."""
ROOT_POD = f"{ROOT}/0"
"""Name of the pod that holds it, where there are pods."""
_KILLED = "killed by "
_POD_LOST = (_KILLED, "OOMKilled", "Evicted", "its pod ")
"""How causes begin of pods that did not end by themselves."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Kept:
    """Where a training keeps its checkpoints."""

    folder: Path
    """Of this training."""
    beside: Path
    """Of all trainings beside the model, whether used or not; goes when the model is written."""

    @classmethod
    def of(cls, model: Path, checkpoint_folder: str, digest: str) -> "Kept":
        """Returns the place of a training.

        Args:
            model: where the training's model goes.
            checkpoint_folder: where the user wants checkpoints; empty for beside the model.
            digest: of all that has a part in the result.

        Raises:
            InputError: nothing can be written there.
        """
        beside = model.with_name(f"{model.name}-checkpoints")
        folder = usable_folder(Path(checkpoint_folder or beside)) / digest
        return cls(folder=folder.absolute(), beside=beside)

    def forget(self) -> None:
        """Removes the training's checkpoints, once its model is written."""
        forget(self.folder)
        forget(self.beside)


def run_attempts(
    tree: TreeJob,
    plan: Callable[[TreeJob], Job],
    log_folder: Path,
    restarting: Callable[[TreeJob], Restarting | None] = lambda _tree: None,
) -> None:
    """Runs a training on this machine to its end; see `repeat`.

    Args:
        tree: the tree's job; without a `checkpoint_folder` there is one attempt, which begins afresh.
        plan: writes what the processes are given for an attempt, and returns these; its deadline is that of
            all attempts together.
        log_folder: what each process prints goes here, of a further attempt to `restart-1` and so on in it.
        restarting: returns who plans processes anew that are killed in an attempt; None ends it then.

    Raises:
        ProcessFailed: see `repeat`.
    """
    began = time.monotonic()

    def attempt(tree: TreeJob, number: int) -> None:
        job = plan(tree)
        left_s = max(1.0, job.deadline_s - (time.monotonic() - began))
        run_job(
            replace(job, deadline_s=left_s),
            log_folder=log_folder / f"restart-{number}" if number else log_folder,
            restarting=restarting(tree),
        )

    repeat(tree, attempt)


def repeat(tree: TreeJob, attempt: Callable[[TreeJob, int], None]) -> None:
    """Runs a training to its end, from the last checkpoint that all processes have whole.

    Args:
        tree: the tree's job; without a `checkpoint_folder` there is one attempt, which begins afresh.
        attempt: runs the whole training once, in whatever way; is given the attempt's number from 0.

    Raises:
        ProcessFailed: a process failed, and it was neither the root nor a pod that was killed, or that too
            often.
    """
    restarts = 0
    _say_when_afresh(tree)
    while True:
        tree = replace(tree, run_id=uuid.uuid4().hex[:8], resume=_last(tree))
        if tree.resume:
            forget_after(Path(tree.checkpoint_folder), tree.resume)
            progress(f"resumes after epoch {tree.resume}, from the checkpoint in {tree.checkpoint_folder}")
        try:
            attempt(tree, restarts)
        except ProcessFailed as failure:
            if restarts == RESTARTS or not _all_must_start_again(failure) or not _last(tree):
                raise
            restarts += 1
            progress(f"{failure}: starts again, {restarts} of at most {RESTARTS} times")
        else:
            return


def _say_when_afresh(tree: TreeJob) -> None:
    kept = Path(tree.checkpoint_folder).parent
    if tree.checkpoint_folder and not _last(tree) and any(kept.iterdir()):
        progress(f"begins afresh: {kept} holds no whole checkpoint of these options and data")


def _last(tree: TreeJob) -> int:
    return last_common(Path(tree.checkpoint_folder), tree.members) if tree.checkpoint_folder else 0


def _all_must_start_again(failure: ProcessFailed) -> bool:
    """Tells whether the root was killed, in its pod or alone, or a pod with all that it held."""
    if f"/{failure.replica}".endswith(f"/{ROOT_REPLICA}"):
        return failure.cause.startswith(_KILLED)
    return bool(re.fullmatch(r"(.+/)?[^/]+/\d+", failure.replica)) and failure.cause.startswith(_POD_LOST)
