"""The checkpoints of one training: a folder with the state of every worker after its last epochs.

Its folder, for two workers::

    <checkpoints>/
      3f0c21d07a94b8e1/                 one training: the digest of its options, model, code and partitions
        epoch-2/
          worker-0.safetensors
          worker-1.safetensors
        epoch-3/
          worker-0.safetensors          worker 1 has not written yet: epoch 2 is what is gone on from

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

from .._files import sha256
from .config import TrainingConfig
from .trained_gnn import ModelSource
from .training_state import TrainingState

NO_PART_IN_RESULT = ("checkpoint_folder", "num_samplers", "timeout_s")
"""Options that may differ when a training goes on."""


def training_digest(config: TrainingConfig, source: ModelSource, partitions: Path) -> str:
    """Returns what tells trainings apart that must not go on from each other's checkpoints, 16 hex digits."""
    options = {name: value for name, value in asdict(config).items() if name not in NO_PART_IN_RESULT}
    code = source.user_code
    files = sorted(path for path in code.rglob("*") if path.is_file()) if code else []
    what = {
        "geokfp": version("geokfp"),
        "options": options,
        "partitions": sha256(partitions / "manifest.json"),
        "code": {path.relative_to(str(code)).as_posix(): sha256(path) for path in files},
    }
    return hashlib.sha256(json.dumps(what, sort_keys=True, default=list).encode()).hexdigest()[:16]


def last_epoch(folder: Path, num_workers: int) -> int:
    """Returns the last epoch that all workers have written in a training's folder; 0 when there is none."""
    epochs = (_epoch(path) for path in folder.glob("epoch-*") if len(_states(path)) == num_workers)
    return max(epochs, default=0)


class WorkerCheckpoints:
    """See `loop.Checkpoints`; those of one worker.

    Args:
        folder: the training's folder.
        worker: number of the worker.
        resume_epoch: the epoch to go on after, as `last_epoch` gave it before any worker started; 0 for none.
    """

    def __init__(self, folder: Path, worker: int, resume_epoch: int):
        self._folder = folder
        self._name = f"worker-{worker}.safetensors"
        self._resume_epoch = resume_epoch

    def restore(self, state: TrainingState) -> None:
        """See `Checkpoints`.

        Raises:
            ArtifactError: the file is not whole, or is of another model.
        """
        if self._resume_epoch:
            state.read(self._path(self._resume_epoch))

    def save(self, state: TrainingState) -> None:
        """See `Checkpoints`."""
        epoch = state.history[-1].epoch
        state.write(self._path(epoch))
        for path in self._folder.glob(f"epoch-*/{self._name}"):
            if not epoch - 1 <= _epoch(path.parent) <= epoch:
                path.unlink(missing_ok=True)
                _remove_when_empty(path.parent)

    def _path(self, epoch: int) -> Path:
        return self._folder / f"epoch-{epoch}" / self._name


def forget(folder: Path) -> None:
    """Removes a training's checkpoints, once its model is written."""
    shutil.rmtree(folder, ignore_errors=True)


def _states(epoch_folder: Path) -> list[Path]:
    return list(epoch_folder.glob("worker-*.safetensors"))


def _epoch(epoch_folder: Path) -> int:
    found = re.fullmatch(r"epoch-(\d+)", epoch_folder.name)
    return int(found[1]) if found else 0


def _remove_when_empty(folder: Path) -> None:
    try:
        folder.rmdir()
    except OSError:  # another worker's file lies there still
        return
