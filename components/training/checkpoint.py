"""The checkpoints of one training: a folder with the state of every worker after its last epochs.

Its folder, for two workers::

    <checkpoints>/
      3f0c21d07a94b8e1/                 one training: the digest of its options, model, code and partitions
        epoch-2/
          worker-0/
            manifest.json               kind geokfp.checkpoint, version 1: epoch, checksum
            state.safetensors           see `training_state`
          worker-1/
        epoch-3/
          worker-0/                     worker 1 has not written yet: epoch 2 is what is gone on from

Two epochs are kept: no worker can end an epoch before all have written the one before it, since all meet in
each epoch. Knows nothing of processes.
"""

import hashlib
import json
import re
import shutil
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path

from .._files import ArtifactError, InputError, new_directory, read_manifest, sha256, write_manifest
from .config import TrainingConfig
from .trained_gnn import ModelSource
from .training_state import TrainingState

KIND = "geokfp.checkpoint"
VERSION = 1
STATE = "state.safetensors"
GRAPH_FILE = "graph.dgl"
NO_PART_IN_RESULT = ("checkpoint_folder", "num_samplers", "timeout_s")
"""Options that may differ when a training goes on."""


def training_digest(config: TrainingConfig, source: ModelSource, partitions: Path) -> str:
    """Returns what tells trainings apart that must not go on from each other's checkpoints, 16 hex digits.

    Equal partitions that were written twice count as the same: DGL's graph files differ from write to write
    in bytes that mean nothing; all that they hold follows from the graph's fingerprint and the other files.
    """
    options = {name: value for name, value in asdict(config).items() if name not in NO_PART_IN_RESULT}
    code = source.user_code
    files = sorted(path for path in code.rglob("*") if path.is_file()) if code else []
    manifest = json.loads((partitions / "manifest.json").read_text(encoding="utf-8"))
    checksums = {name: sum_ for name, sum_ in manifest["files"].items() if not name.endswith(GRAPH_FILE)}
    what = {
        "geokfp": version("geokfp"),
        "options": options,
        "partitions": {**manifest, "files": checksums},
        "code": {path.relative_to(str(code)).as_posix(): sha256(path) for path in files},
    }
    return hashlib.sha256(json.dumps(what, sort_keys=True, default=list).encode()).hexdigest()[:16]


def usable_folder(folder: Path) -> Path:
    """Makes the folder of all checkpoints where it is missing, and returns it.

    Raises:
        InputError: nothing can be written there.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / ".writable").touch()
        (folder / ".writable").unlink()
    except OSError as error:
        raise InputError(
            f"checkpoint_folder {str(folder)!r}: {error.strerror}; must be a folder that can be written to"
        ) from error
    return folder


def last_epoch(folder: Path, num_workers: int) -> int:
    """Returns the last epoch that all workers have written whole; 0 when there is none."""
    epochs = sorted((_epoch(path) for path in folder.glob("epoch-*")), reverse=True)
    return next((epoch for epoch in epochs if _is_whole(folder, epoch, num_workers)), 0)


def _is_whole(folder: Path, epoch: int, num_workers: int) -> bool:
    states = [_state_folder(folder, epoch, worker) for worker in range(num_workers)]
    try:
        found = [read_manifest(state, kind=KIND, version=VERSION)["epoch"] for state in states]
    except ArtifactError:
        return False
    return found == [epoch] * num_workers


class WorkerCheckpoints:
    """See `loop.Checkpoints`; those of one worker.

    Args:
        folder: the training's folder.
        worker: number of the worker.
        resume_epoch: the epoch to go on after, as `last_epoch` gave it before any worker started; 0 for none.
    """

    def __init__(self, folder: Path, worker: int, resume_epoch: int):
        self._folder = folder
        self._worker = worker
        self._resume_epoch = resume_epoch

    def restore(self, state: TrainingState) -> None:
        """See `Checkpoints`.

        Raises:
            ArtifactError: the file is of another model.
        """
        if self._resume_epoch:
            state.read(_state_folder(self._folder, self._resume_epoch, self._worker) / STATE)

    def save(self, state: TrainingState) -> None:
        """See `Checkpoints`."""
        epoch = state.history[-1].epoch
        with new_directory(_state_folder(self._folder, epoch, self._worker)) as folder:
            state.write(folder / STATE)
            write_manifest(folder, kind=KIND, version=VERSION, body={"epoch": epoch})
        for path in self._folder.glob(f"epoch-*/worker-{self._worker}"):
            if not epoch - 1 <= _epoch(path.parent) <= epoch:
                shutil.rmtree(path, ignore_errors=True)
                _remove_when_empty(path.parent)


def forget(folder: Path) -> None:
    """Removes a training's checkpoints, once its model is written."""
    shutil.rmtree(folder, ignore_errors=True)


def _state_folder(folder: Path, epoch: int, worker: int) -> Path:
    return folder / f"epoch-{epoch}" / f"worker-{worker}"


def _epoch(epoch_folder: Path) -> int:
    found = re.fullmatch(r"epoch-(\d+)", epoch_folder.name)
    return int(found[1]) if found else 0


def _remove_when_empty(folder: Path) -> None:
    try:
        folder.rmdir()
    except OSError:  # another worker's state lies there still
        return
