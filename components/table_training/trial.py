"""A process that builds the model once and lets it take a step, before any worker starts.

It is a process of its own, as the user's code may load any framework. What is wrong with the model comes back
as one line.
"""

import json
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from .._files import InputError
from .._launch import Job, Replica, Role, run_job
from ..ingest.graph import Array
from ..training.user_code import raising_input_error
from .job import source_from, source_to, write_json
from .learner import Shapes, step_alone
from .source import TORCH, Built, ModelSource

TRIAL = "geokfp.components.table_training.trial:main"
NUM_ROWS = 2
"""Rows of the trial's batch: as few as BatchNorm can do with."""


@dataclass(frozen=True, slots=True)
class Trial:
    """Where a trial is told what to try, and where it tells what came of it."""

    folder: Path

    @property
    def question(self) -> Path:
        """The model's source."""
        return self.folder / "source.json"

    @property
    def answer(self) -> Path:
        """The framework, or why the model is refused."""
        return self.folder / "trial.json"


def try_model(source: ModelSource, folder: Path, *, timeout_s: float) -> str:
    """Builds the model in a process of its own.

    Args:
        source: how to build it.
        folder: for what the processes hand to each other; logs go to `logs` in it.
        timeout_s: seconds after which the trial is ended as failed.

    Returns:
        The framework.

    Raises:
        InputError: the model cannot be built, or cannot be trained; the line says why.
        ProcessFailed: the code ended the process.
    """
    trial = Trial(folder)
    write_json(trial.question, source_to(source))
    replica = Replica(name="trial", environment={"OMP_NUM_THREADS": "1"}, arguments=(str(folder),))
    role = Role(name="trial", target=TRIAL, replicas=(replica,))
    run_job(Job(name="geo_train", roles=(role,), deadline_s=timeout_s), log_folder=folder / "logs")
    answer = json.loads(trial.answer.read_text(encoding="utf-8"))
    if "refused" in answer:
        raise InputError(answer["refused"])
    return str(answer["framework"])


def main(arguments: list[str]) -> None:
    """Tries the model.

    Args:
        arguments: the trial's folder.
    """
    trial = Trial(Path(arguments[0]))
    source = source_from(json.loads(trial.question.read_text(encoding="utf-8")))
    try:
        answer = {"framework": _tried(source).framework}
    except InputError as error:
        answer = {"refused": str(error)}
    write_json(trial.answer, answer)


def _tried(source: ModelSource) -> Built:
    built = source.build()
    features = np.random.default_rng(0).random((NUM_ROWS, *source.feature_shape), dtype=np.float32)
    labels: Array = np.zeros(NUM_ROWS, np.int64 if source.num_classes else np.float32)
    by_user = bool(source.entry_point)
    with raising_input_error(source.entry_point, source.user_code) if by_user else nullcontext():
        shapes = step_alone(built, features, labels)
    _check(source, built.framework, shapes)
    return built


def _check(source: ModelSource, framework: str, shapes: Shapes) -> None:
    n, k = NUM_ROWS, source.num_classes
    outputs = [(n, k)] if k else [(n, 1), (n,)]
    losses = [(), (1,)] if framework == TORCH else [(n,)]
    for what, shape, allowed in (("outputs", shapes.outputs, outputs), ("a loss", shapes.loss, losses)):
        if shape not in allowed:
            shown = " or ".join(str(list(each)) for each in allowed)
            raise source.refused(f"gives {what} of shape {list(shape)} for {n} rows, {shown} is needed")
