"""What the worker asks of a framework; one implementation each of torch and of MXNet's gluon."""

from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np

from ..geo_training.checkpoints.state import Stateful
from ..geo_training.synchronization import WorkerPolicy
from ..geo_training.workers.plane import Plane
from ..ingest.graph import Array
from .source import MXNET, Built


@dataclass(frozen=True, slots=True)
class Judged:
    """What a model says about n rows, at least one.

    Attributes:
        outputs: float32 [n, num_classes], logits; for regression [n, 1].
        loss: the sum over the rows.
    """

    outputs: Array
    loss: float


@dataclass(frozen=True, slots=True)
class Shapes:
    """Shapes of what a model and its loss gave for a batch.

    Attributes:
        outputs: of the model's outputs.
        loss: of the loss.
    """

    outputs: tuple[int, ...]
    loss: tuple[int, ...]


class Learner(Stateful, Protocol):
    """A model that learns together with the other workers'; joined when it is made.

    Its state is that of model, optimizer and what is exchanged; taken by all workers after the same epoch.
    """

    def step(self, features: Array, labels: Array) -> float:
        """Takes one step with the others, and returns the loss summed over the batch.

        Args:
            features: float32 [n, ...]; without a row the step is the others' alone.
            labels: int64 [n], for regression float32 [n].
        """

    def judge(self, features: Array, labels: Array) -> Judged:
        """Returns what the model says; it learns nothing."""

    def agreed(self) -> AbstractContextManager[None]:
        """Enters the weights that all workers last agreed on, for as long as the block runs."""

    def finish(self, weights: Path | None) -> None:
        """Ends together with the others, with the same weights; called once, after the last step.

        Args:
            weights: folder for the files of weights; None where another worker writes them.
        """


def join(built: Built, plane: Plane, policy: WorkerPolicy, sample: Array) -> Learner:
    """Joins the other workers; the model has the first worker's weights afterwards.

    Args:
        built: the worker's own model, loss and optimizer.
        plane: what joins the workers.
        policy: what is exchanged, and when.
        sample: features of a row or more, float32 [n, ...]: gluon learns shapes from it.
    """
    if built.framework == MXNET:
        from .gluon_learner import GluonLearner

        return GluonLearner(built, plane, policy, sample)
    from .torch_learner import TorchLearner

    return TorchLearner(built, plane, policy)


def step_alone(built: Built, features: Array, labels: Array) -> Shapes:
    """Lets a model take a step alone, so that what cannot be trained shows before any worker starts.

    Args:
        built: a model that nobody needs afterwards.
        features: float32 [n, ...].
        labels: int64 [n], for regression float32 [n].
    """
    if built.framework == MXNET:
        from . import gluon_learner

        return gluon_learner.step_alone(built, features, labels)
    from . import torch_learner

    return torch_learner.step_alone(built, features, labels)


def flat_outputs(outputs: Array) -> Array:
    """Returns outputs as float32 [n, k]."""
    return np.asarray(outputs, dtype=np.float32).reshape(len(outputs), -1)
