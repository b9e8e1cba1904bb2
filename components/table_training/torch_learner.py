"""A model of torch that learns together with the other workers'. Knows nothing of sites and sockets."""

from contextlib import AbstractContextManager
from pathlib import Path

import torch
from torch import Tensor

from ..geo_training.checkpoints.state import State
from ..geo_training.frameworks.exchange import GeoExchange
from ..geo_training.frameworks.torch_state import load_torch_state, torch_state
from ..geo_training.synchronization import WorkerPolicy
from ..geo_training.workers.plane import Plane
from ..ingest.graph import Array
from .learner import Judged, Shapes, flat_outputs
from .source import Built
from .trained_model import WEIGHTS


class TorchLearner:
    """See `Learner`.

    Args:
        built: the worker's own model, loss and optimizer.
        plane: what joins the workers.
        policy: what is exchanged, and when.
    """

    def __init__(self, built: Built, plane: Plane, policy: WorkerPolicy) -> None:
        self._built = built
        self._exchange = GeoExchange(plane, policy, built.optimizer)
        self._exchange.broadcast(built.model)

    def step(self, features: Array, labels: Array) -> float:
        """See `Learner`."""
        model, optimizer, n = self._built.model, self._built.optimizer, len(labels)
        if not n:
            self._exchange.step(model, optimizer, 0)
            return 0.0
        with self._exchange.sending(n):
            _, loss = _gradients(self._built, features, labels)
        with torch.no_grad():
            for parameter in model.parameters():
                if parameter.grad is not None:
                    parameter.grad *= n  # the policies take the gradient summed over the samples
        self._exchange.step(model, optimizer, n)
        return float(loss) * n

    @torch.no_grad()
    def judge(self, features: Array, labels: Array) -> Judged:
        """See `Learner`."""
        self._built.model.eval()
        outputs, loss = _outputs_and_loss(self._built, features, labels)
        return Judged(flat_outputs(outputs.numpy()), float(loss) * len(labels))

    def agreed(self) -> AbstractContextManager[None]:
        """See `Learner`."""
        return self._exchange.agreed(self._built.model)

    def state(self) -> State:
        """See `Learner`."""
        exchanged = self._exchange.state()  # first: it may wait for what changes the model
        return State.of(
            {"exchange": exchanged, "torch": torch_state(self._built.model, self._built.optimizer)}
        )

    def load_state(self, state: State) -> None:
        """See `Learner`."""
        load_torch_state(self._built.model, self._built.optimizer, state.part("torch"))
        self._exchange.load_state(state.part("exchange"))

    def finish(self, weights: Path | None) -> None:
        """See `Learner`."""
        self._exchange.finish(self._built.model)
        if weights is not None:
            from ..training.trained_gnn import save_weights

            save_weights(self._built.model, weights / WEIGHTS)


def step_alone(built: Built, features: Array, labels: Array) -> Shapes:
    """Takes a step without other workers."""
    outputs, loss = _gradients(built, features, labels)
    built.optimizer.step()
    return Shapes(tuple(outputs.shape), tuple(loss.shape))


def _gradients(built: Built, features: Array, labels: Array) -> tuple[Tensor, Tensor]:
    built.model.train()
    built.model.zero_grad()
    outputs, loss = _outputs_and_loss(built, features, labels)
    loss.backward()  # type: ignore[no-untyped-call]
    return outputs, loss.detach()


def _outputs_and_loss(built: Built, features: Array, labels: Array) -> tuple[Tensor, Tensor]:
    outputs: Tensor = built.model(torch.from_numpy(features))
    truth = torch.from_numpy(labels)
    if truth.is_floating_point():  # a loss of [n, 1] and [n] would be over n x n pairs
        truth = truth.reshape(outputs.shape)
    loss: Tensor = built.loss(outputs, truth)
    return outputs, loss
