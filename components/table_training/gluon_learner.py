"""A gluon block that learns together with the other workers'. Knows nothing of sites. For MXNet 1.9.1."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import mxnet as mx
import numpy as np

from ..geo_training.plane import SMALL, Layout, Plane
from ..geo_training.synchronization import WorkerPolicy
from ..geo_training.synchronization.base import WEIGHTS
from ..ingest.graph import Array
from .learner import Judged, Shapes, flat_outputs
from .source import Built

EXPORTED = "model"
"""What the names of the exported files begin with."""


class GluonReplica:
    """See `Replica`: the parameters of a block that was called once.

    Large parameters come first, then the small ones, which travel together.

    Args:
        block: the block.

    Attributes:
        learned: parameters with a gradient.
    """

    def __init__(self, block: Any) -> None:
        parameters = list(block.collect_params().values())
        self.learned = [each for each in parameters if each.grad_req != "null"]
        self.learned.sort(key=lambda each: each.data().size < SMALL)
        self._measured = [each for each in parameters if each.grad_req == "null"]
        self.layout = _layout(self.learned)
        self.statistics_layout = _layout(self._measured)

    def weights(self) -> Array:
        """See `Replica`."""
        return _flat([each.data() for each in self.learned])

    def set_weights(self, weights: Array) -> None:
        """See `Replica`."""
        _spread(weights, self.learned)

    def statistics(self) -> Array:
        """See `Replica`."""
        return _flat([each.data() for each in self._measured])

    def set_statistics(self, statistics: Array) -> None:
        """See `Replica`."""
        _spread(statistics, self._measured)

    def gradient(self) -> Array:
        """Returns the gradients, float32 [layout.count]."""
        return _flat([each.grad() for each in self.learned])


class GluonLearner:
    """See `Learner`.

    Args:
        built: the worker's own block, loss and optimizer.
        plane: what joins the workers.
        policy: what is exchanged, and when.
        sample: features of a row or more; blocks learn their shapes from it.
    """

    def __init__(self, built: Built, plane: Plane, policy: WorkerPolicy, sample: Array) -> None:
        self._built, self._policy = built, policy
        self._replica = replica = _prepared(built, sample)
        self._update = _updater(built, replica)
        for role, layout, read, write in (
            (WEIGHTS, replica.layout, replica.weights, replica.set_weights),
            ("buffers", replica.statistics_layout, replica.statistics, replica.set_statistics),
        ):
            if layout.count:
                first = plane.sum(role, layout, read() if plane.index == 0 else None).wait()
                assert first is not None  # the first worker's are in it
                write(first)
        policy.begin(replica, plane, self._update)

    def step(self, features: Array, labels: Array) -> float:
        """See `Learner`."""
        if not len(labels):
            self._policy.step(None, 0)
            return 0.0
        _, loss = _gradients(self._built, features, labels)
        self._policy.step(self._replica.gradient(), len(labels))
        return float(loss.sum().asscalar())

    def judge(self, features: Array, labels: Array) -> Judged:
        """See `Learner`."""
        outputs, loss = _outputs_and_loss(self._built, features, labels)
        return Judged(flat_outputs(outputs.asnumpy()), float(loss.sum().asscalar()))

    @contextmanager
    def agreed(self) -> Iterator[None]:
        """See `Learner`."""
        agreed = self._policy.agreed()
        if agreed is None:
            yield
            return
        own = self._replica.weights()
        self._replica.set_weights(agreed)
        yield
        self._replica.set_weights(own)

    def finish(self, weights: Path | None) -> None:
        """See `Learner`."""
        self._policy.finish()
        if weights is not None:
            self._built.model.export(str(weights / EXPORTED))


def step_alone(built: Built, features: Array, labels: Array) -> Shapes:
    """Takes a step without other workers."""
    replica = _prepared(built, features)
    outputs, loss = _gradients(built, features, labels)
    _updater(built, replica)(replica.gradient() / np.float32(len(labels)))
    return Shapes(outputs.shape, loss.shape)


def _prepared(built: Built, sample: Array) -> GluonReplica:
    """Traces the block, as its export needs, which also gives shapes to its parameters."""
    built.model.hybridize()
    built.model(mx.nd.array(sample))
    return GluonReplica(built.model)


def _updater(built: Built, replica: GluonReplica) -> Any:
    """Returns what lets the optimizer take a step with a flat mean gradient, as gluon's Trainer would."""
    built.optimizer.param_dict = dict(enumerate(replica.learned))
    update = mx.optimizer.get_updater(built.optimizer)

    def step(mean: Array) -> None:
        offset = 0
        for index, parameter in enumerate(replica.learned):
            weight = parameter.data()
            gradient = mean[offset : offset + weight.size].reshape(weight.shape)
            update(index, mx.nd.array(gradient), weight)
            offset += weight.size

    return step


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


def _layout(parameters: Sequence[Any]) -> Layout:
    return Layout.of([(str(index), each.data().size) for index, each in enumerate(parameters)])


def _flat(arrays: Sequence[Any]) -> Array:
    if not arrays:
        return np.zeros(0, np.float32)
    flat: Array = np.concatenate([each.asnumpy().reshape(-1).astype(np.float32) for each in arrays])
    return flat


def _spread(flat: Array, parameters: Sequence[Any]) -> None:
    offset = 0
    for parameter in parameters:
        array = parameter.data()
        # Not `array[:] =`, which fails where an inference has laid the array out for its convolution.
        mx.nd.array(flat[offset : offset + array.size].reshape(array.shape)).copyto(array)
        offset += array.size
