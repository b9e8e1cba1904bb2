"""The training loop, written once for all planes that join workers.

Knows nothing of DGL's servers nor of networks. Every worker runs it over its own batches and comes out with
the same weights: all take the same number of steps, a worker without batches adds nothing to the average, and
whether to stop is decided on sums over all workers.
"""

import copy
import math
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from .config import TrainingConfig
from .epochs import BestEpoch, EpochRow
from .exchange import Exchange
from .seeds import draw_seed, seed_everything
from .sparse_rows import SparseRows
from .training_state import TrainingState


@dataclass(frozen=True)
class Batch:
    """Nodes to classify with their neighbourhood."""

    blocks: list[Any]
    """One DGL block a layer, outermost first."""
    features: Tensor | SparseRows
    """Of the first block's sources, float32 [s, num_features]; sparse only where the model takes it."""
    labels: Tensor
    """Of the last block's destinations, int64 [n]."""


class TrainingNodes(Protocol):
    """Where a worker's batches come from; `site_view.SiteView` is one."""

    num_train: int

    def train_batches(self, epoch: int) -> Iterable[Batch]:
        """Returns one epoch of `ceil(num_train / batch_size)` batches; called once an epoch, from 1.

        Which batches they are depends on the epoch alone, not on those that were before.
        """

    def validation_batches(self) -> Iterable[Batch]:
        """Returns the validation nodes; called after an epoch, exhausted before the next."""


@dataclass(frozen=True)
class Fit:
    """What a training gave."""

    history: list[EpochRow]
    """One row an epoch."""
    best_epoch: int
    """The epoch whose weights the model has now."""


class Checkpoints(Protocol):
    """Where a worker's state is kept; every worker has its own, all for the same epochs."""

    def restore(self, state: TrainingState) -> None:
        """Puts the kept state into one that has not been trained; called once, before the first epoch."""

    def save(self, state: TrainingState) -> None:
        """Keeps a state after an epoch; called by all workers after each, in the same order."""


@dataclass
class Hooks:
    """What the caller wants to be told; both are called on every worker."""

    on_epoch: Callable[[EpochRow], None] = lambda _row: None
    """Called after each epoch."""
    on_best: Callable[[nn.Module, EpochRow], None] = lambda _model, _row: None
    """Called when an epoch's validation is the best so far, before `on_epoch`."""


def fit(
    nodes: TrainingNodes,
    model: nn.Module,
    config: TrainingConfig,
    exchange: Exchange,
    hooks: Hooks | None = None,
    checkpoints: Checkpoints | None = None,
) -> Fit:
    """Trains a model, together with all other workers of the exchange, which call this too.

    Every random draw of an epoch is a function of `config.seed`, the worker and the epoch. So a training that
    goes on from a checkpoint takes the same steps as one that was never interrupted.

    Args:
        nodes: this worker's batches.
        model: the model; takes over worker 0's weights first, and has the best epoch's at the end.
        config: learning rate, epochs, patience and the like; the same on all workers.
        exchange: what joins the workers.
        hooks: what to call after an epoch.
        checkpoints: where this worker's state is kept after each epoch, and begun from; None keeps nothing.
    """
    hooks = hooks or Hooks()
    exchange.broadcast(model)
    optimizer = torch.optim.Adam(
        model.parameters(), lr=config.learning_rate, weight_decay=config.weight_decay
    )
    num_steps = _most(math.ceil(nodes.num_train / config.batch_size), exchange)
    state = TrainingState(model, optimizer)
    if checkpoints is not None:
        checkpoints.restore(state)
    best = BestEpoch.of(state.history)
    for epoch in range(len(state.history) + 1, config.epochs + 1):
        if best.is_stale(epoch - 1, config.patience):
            break
        started = time.monotonic()
        seed_everything(draw_seed(config.seed, exchange.index, epoch))
        train = _train_epoch(nodes.train_batches(epoch), state, exchange, num_steps)
        if epoch == config.epochs:
            exchange.finish(model)
        validated = epoch % config.eval_every == 0 or epoch == config.epochs
        with exchange.agreed(model):
            validation = measure(model, nodes.validation_batches(), exchange) if validated else _NOTHING
            row = EpochRow(epoch, *train, *validation, seconds=time.monotonic() - started)
            if best.takes(row):
                state.best_weights = copy.deepcopy(model.state_dict())
                hooks.on_best(model, row)
        state.history.append(row)
        if checkpoints is not None:
            checkpoints.save(state)
        hooks.on_epoch(row)
    if len(state.history) < config.epochs:
        exchange.finish(model)
    if state.best_weights:
        model.load_state_dict(state.best_weights)
    return Fit(state.history, best.epoch or len(state.history))


_NOTHING = (math.nan, math.nan)


def _most(value: int, exchange: Exchange) -> int:
    values = torch.zeros(exchange.size, dtype=torch.float64)
    values[exchange.index] = value
    return int(exchange.sum(values).max())


def _train_epoch(
    train_batches: Iterable[Batch], state: TrainingState, exchange: Exchange, num_steps: int
) -> tuple[float, float]:
    model, optimizer = state.model.train(), state.optimizer
    totals = torch.zeros(3, dtype=torch.float64)
    batches: Iterator[Batch] = iter(train_batches)
    for _ in range(num_steps):
        optimizer.zero_grad(set_to_none=True)
        batch = next(batches, None)
        if batch is not None:
            totals += _backward(model, batch)
        exchange.step(model, optimizer, 0 if batch is None else len(batch.labels))
    return _means(exchange.sum(totals))


def _backward(model: nn.Module, batch: Batch) -> Tensor:
    logits = model(batch.blocks, batch.features)
    loss = nn.functional.cross_entropy(logits, batch.labels, reduction="sum")
    loss.backward()  # type: ignore[no-untyped-call]
    return _totals(loss, logits, batch.labels)


@torch.no_grad()
def measure(model: nn.Module, batches: Iterable[Batch], exchange: Exchange) -> tuple[float, float]:
    """Returns loss and accuracy over all workers' batches, in evaluation mode; NaN without any."""
    model.eval()
    totals = torch.zeros(3, dtype=torch.float64)
    for batch in batches:
        logits = model(batch.blocks, batch.features)
        totals += _totals(
            nn.functional.cross_entropy(logits, batch.labels, reduction="sum"), logits, batch.labels
        )
    return _means(exchange.sum(totals))


def _totals(loss: Tensor, logits: Tensor, labels: Tensor) -> Tensor:
    correct = (logits.detach().argmax(1) == labels).sum()
    return torch.tensor([float(loss.detach()), float(correct), float(len(labels))], dtype=torch.float64)


def _means(totals: Tensor) -> tuple[float, float]:
    loss, correct, count = totals.tolist()
    return (loss / count, correct / count) if count else _NOTHING
