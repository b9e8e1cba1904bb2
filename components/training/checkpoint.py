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
each epoch. Folders, checksums and what goes: `_files.checkpoints`. Knows nothing of processes.
"""

import json
from collections.abc import Collection
from dataclasses import asdict
from pathlib import Path

from .._files.checkpoints import checkpoint_of, digest, last_common, new_checkpoint
from .._launch.launch_options import LAUNCH_OPTIONS
from .config import LearningConfig
from .trained_gnn import ModelSource
from .training_state import TrainingState

STATE = "state.safetensors"
GRAPH_FILE = "graph.dgl"
NO_PART_IN_RESULT = ("checkpoint_folder", "num_samplers", "timeout_s", "warm_start", *LAUNCH_OPTIONS)
"""Options that may differ when a training goes on; of a warm start its weights count, not where they lay."""


def training_digest(
    config: LearningConfig,
    source: ModelSource,
    partitions: Path,
    no_part: Collection[str] = NO_PART_IN_RESULT,
) -> str:
    """Returns what tells trainings apart that must not go on from each other's checkpoints, 16 hex digits.

    Equal partitions that were written twice count as the same: DGL's graph files differ from write to write
    in bytes that mean nothing; all that they hold follows from the graph's fingerprint and the other files.

    Args:
        config: the options.
        source: the model's, with the user's code.
        partitions: a partitions artifact.
        no_part: options that may differ.
    """
    options = {name: value for name, value in asdict(config).items() if name not in no_part}
    manifest = json.loads((partitions / "manifest.json").read_text(encoding="utf-8"))
    checksums = {name: sum_ for name, sum_ in manifest["files"].items() if not name.endswith(GRAPH_FILE)}
    return digest(options, source.user_code, {**manifest, "files": checksums})


def worker_name(worker: int) -> str:
    """Returns the name under which a worker keeps its checkpoints."""
    return f"worker-{worker}"


def last_epoch(folder: Path, num_workers: int) -> int:
    """Returns the last epoch that all workers have written whole; 0 when there is none."""
    return last_common(folder, [worker_name(worker) for worker in range(num_workers)])


class WorkerCheckpoints:
    """See `loop.Checkpoints`; those of one worker.

    Args:
        folder: the training's folder.
        worker: number of the worker.
        resume_epoch: the epoch to go on after, as `last_epoch` gave it before any worker started; 0 for none.
    """

    def __init__(self, folder: Path, worker: int, resume_epoch: int):
        self._folder = folder
        self._name = worker_name(worker)
        self._resume_epoch = resume_epoch

    def restore(self, state: TrainingState) -> None:
        """See `Checkpoints`.

        Raises:
            ArtifactError: the file is of another model.
        """
        if self._resume_epoch:
            state.read(checkpoint_of(self._folder, self._resume_epoch, self._name) / STATE)

    def save(self, state: TrainingState) -> None:
        """See `Checkpoints`."""
        with new_checkpoint(self._folder, state.history[-1].epoch, self._name) as folder:
            state.write(folder / STATE)
