"""A gluon block that learns together with the other workers'. Knows nothing of sites. For MXNet 1.9.1."""

from collections.abc import Iterable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import mxnet as mx
import numpy as np

from ..geo_training.checkpoints.state import State
from ..geo_training.frameworks.mxnet_replica import MxnetReplica
from ..geo_training.frameworks.mxnet_state import load_updater_state, updater_state
from ..geo_training.synchronization import WorkerPolicy
from ..geo_training.synchronization.agreed import holding_agreed
from ..geo_training.workers.plane import Plane
from ..ingest.graph import Array
from .learner import Judged, Shapes, flat_outputs
from .source import Built

EXPORTED = "model"
"""What the names of the exported files begin with."""


class GluonLearner:
    """See `Learner`.

    Args:
        built: the worker's own block, loss and optimizer.
        plane: what joins the workers.
        policy: what is exchanged, and when.
        sample: features of a row or more; blocks learn their shapes from it.
    """

    def __init__(self, built: Built, plane: Plane, policy: WorkerPolicy, sample: Array) -> None:
        self._built, self._policy, self._plane = built, policy, plane
        self._replica = replica = _prepared(built, sample)
        self._optimizer = _Optimizer(built, replica)
        replica.take_first(plane)
        policy.begin(replica, plane, self._optimizer.step_flat)

    def step(self, features: Array, labels: Array) -> float:
        """See `Learner`."""
        if not len(labels):
            self._policy.step(None, 0)
            self._plane.stepped()
            return 0.0
        _, loss = _gradients(self._built, features, labels)
        self._policy.step(self, len(labels))
        self._plane.stepped()
        return float(loss.sum().asscalar())

    def flat(self) -> Array:
        """See `Gradient`."""
        return self._replica.gradient()

    def apply(self, num_samples: int) -> None:
        """See `Gradient`."""
        self._optimizer.step(gradient / num_samples for gradient in self._replica.gradients())

    def judge(self, features: Array, labels: Array) -> Judged:
        """See `Learner`."""
        outputs, loss = _outputs_and_loss(self._built, features, labels)
        return Judged(flat_outputs(outputs.asnumpy()), float(loss.sum().asscalar()))

    def agreed(self) -> AbstractContextManager[None]:
        """See `Learner`."""
        return holding_agreed(self._policy, self._replica)

    def state(self) -> State:
        """See `Learner`."""
        policy = self._policy.state()  # first: it may wait for what changes the model
        model = {"weights": self._replica.weights(), "statistics": self._replica.statistics()}
        updater = updater_state(self._optimizer.update)
        return State.of({"policy": policy, "model": State(model), "updater": updater})

    def load_state(self, state: State) -> None:
        """See `Learner`."""
        model = state.part("model").arrays
        self._replica.set_weights(model["weights"])
        self._replica.set_statistics(model["statistics"])
        weights = {key: parameter.data() for key, parameter in self._optimizer.parameters.items()}
        load_updater_state(self._optimizer.update, weights, state.part("updater"))
        self._policy.load_state(state.part("policy"))

    def finish(self, weights: Path | None) -> None:
        """See `Learner`."""
        self._policy.finish()
        if weights is not None:
            self._built.model.export(str(weights / EXPORTED))


def step_alone(built: Built, features: Array, labels: Array) -> Shapes:
    """Takes a step without other workers."""
    replica = _prepared(built, features)
    outputs, loss = _gradients(built, features, labels)
    _Optimizer(built, replica).step(gradient / len(labels) for gradient in replica.gradients())
    return Shapes(outputs.shape, loss.shape)


def _prepared(built: Built, sample: Array) -> MxnetReplica:
    """Traces the block, as its export needs, which also gives shapes to its parameters."""
    built.model.hybridize()
    built.model(mx.nd.array(sample))
    parameters = list(built.model.collect_params().values())
    learned = {index: [each.data()] for index, each in enumerate(parameters) if each.grad_req != "null"}
    return MxnetReplica(learned, [[each.data()] for each in parameters if each.grad_req == "null"])


class _Optimizer:
    """Steps as gluon's Trainer would.

    Attributes:
        parameters: those that are learned, by key.
        update: MXNet's updater, which keeps the optimizer's state.
    """

    def __init__(self, built: Built, replica: MxnetReplica) -> None:
        parameters = dict(enumerate(built.model.collect_params().values()))
        built.optimizer.param_dict = self.parameters = {key: parameters[key] for key in replica.keys}
        self._replica = replica
        self.update = mx.optimizer.get_updater(built.optimizer)

    def step_flat(self, mean: Array) -> None:
        """Takes a step with a flat mean gradient."""
        self.step(mx.nd.array(gradient) for _, gradient in self._replica.cut(mean))

    def step(self, means: Iterable[Any]) -> None:
        """Takes a step with the mean gradient of each array, in the replica's order."""
        for (key, parameter), mean in zip(self.parameters.items(), means, strict=True):
            self.update(key, mean, parameter.data())


def _gradients(built: Built, features: Array, labels: Array) -> tuple[Any, Any]:
    with mx.autograd.record():
        outputs, loss = _outputs_and_loss(built, features, labels)
    loss.backward()
    return outputs, loss


def _outputs_and_loss(built: Built, features: Array, labels: Array) -> tuple[Any, Any]:
    outputs = built.model(mx.nd.array(features))
    truth = mx.nd.array(labels, dtype=np.float32)
    if labels.dtype.kind == "f":
        truth = truth.reshape(outputs.shape)
    return outputs, built.loss(outputs, truth)
