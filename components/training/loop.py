"""The training loop, written once for all planes that join workers.

Knows nothing of DGL's servers nor of networks. Every worker runs it over its own batches and comes out with
the same weights: all take the same number of steps, a worker without batches adds nothing to the average, and
whether to stop is decided on sums over all workers.
"""

import copy
import math
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from .config import TrainingConfig
from .exchange import Exchange
from .sparse_rows import SparseRows


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

    def train_batches(self) -> Iterable[Batch]:
        """Returns one epoch of `ceil(num_train / batch_size)` batches; called once an epoch."""

    def validation_batches(self) -> Iterable[Batch]:
        """Returns the validation nodes; called after an epoch, exhausted before the next."""


@dataclass(frozen=True)
class EpochRow:
    """What one epoch gave, over all workers; NaN where nothing was measured."""

    epoch: int
    """From 1."""
    train_loss: float
    """Mean cross entropy over the training nodes, while training."""
    train_accuracy: float
    """Accuracy over the training nodes, while training (with dropout and sampled neighbours)."""
    val_loss: float
    """Mean cross entropy over the validation nodes."""
    val_accuracy: float
    """Accuracy over the validation nodes, with all their neighbours."""
    seconds: float
    """Time of training and validation on this worker."""

    def finite(self) -> dict[str, float]:
        """Returns the values that were measured."""
        return {name: value for name, value in asdict(self).items() if math.isfinite(value)}


@dataclass(frozen=True)
class Fit:
    """What a training gave."""

    history: list[EpochRow]
    """One row an epoch."""
    best_epoch: int
    """The epoch whose weights the model has now."""


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
) -> Fit:
    """Trains a model, together with all other workers of the exchange, which call this too.

    Args:
        nodes: this worker's batches.
        model: the model; takes over worker 0's weights first, and has the best epoch's at the end.
        config: learning rate, epochs, patience and the like; the same on all workers.
        exchange: what joins the workers.
        hooks: what to call after an epoch.
    """
    hooks = hooks or Hooks()
    exchange.broadcast(model)
    torch.manual_seed(config.seed + 1 + exchange.index)
    optimizer = torch.optim.Adam(
        model.parameters(), lr=config.learning_rate, weight_decay=config.weight_decay
    )
    num_steps = _most(math.ceil(nodes.num_train / config.batch_size), exchange)
    best = _Best()
    history: list[EpochRow] = []
    for epoch in range(1, config.epochs + 1):
        started = time.monotonic()
        train = _train_epoch(nodes, model, optimizer, exchange, num_steps)
        validated = epoch % config.eval_every == 0 or epoch == config.epochs
        validation = measure(model, nodes.validation_batches(), exchange) if validated else _NOTHING
        row = EpochRow(epoch, *train, *validation, seconds=time.monotonic() - started)
        history.append(row)
        if best.takes(row, model):
            hooks.on_best(model, row)
        hooks.on_epoch(row)
        if config.patience and best.weights is not None and epoch - best.progress_epoch >= config.patience:
            break
    if best.weights is not None:
        model.load_state_dict(best.weights)
    return Fit(history, best.epoch or len(history))


LOSS_PROGRESS = 0.9
"""A validation loss below this share of the last that counted is progress, though no accuracy rose."""

_NOTHING = (math.nan, math.nan)


class _Best:
    """The best epoch so far: by validation accuracy, equal ones by validation loss.

    Patience counts from `progress_epoch`: a loss that creeps down while no node is classified otherwise would
    keep a training going that has nothing left to gain.
    """

    def __init__(self) -> None:
        self.epoch = 0
        self.accuracy = math.nan
        self.loss = math.nan
        self.progress_epoch = 0
        self._progress_loss = math.inf
        self.weights: dict[str, Tensor] | None = None

    def takes(self, row: EpochRow, model: nn.Module) -> bool:
        if math.isnan(row.val_accuracy):
            return False
        if self.weights is None or row.val_accuracy > self.accuracy or self._loss_fell(row):
            self.progress_epoch, self._progress_loss = row.epoch, min(row.val_loss, self._progress_loss)
        better = self.weights is None or (row.val_accuracy, -row.val_loss) > (self.accuracy, -self.loss)
        if better:
            self.epoch, self.accuracy, self.loss = row.epoch, row.val_accuracy, row.val_loss
            self.weights = copy.deepcopy(model.state_dict())
        return better

    def _loss_fell(self, row: EpochRow) -> bool:
        return row.val_loss < LOSS_PROGRESS * self._progress_loss


def _most(value: int, exchange: Exchange) -> int:
    values = torch.zeros(exchange.size, dtype=torch.float64)
    values[exchange.index] = value
    return int(exchange.sum(values).max())


def _train_epoch(
    nodes: TrainingNodes,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    exchange: Exchange,
    num_steps: int,
) -> tuple[float, float]:
    model.train()
    totals = torch.zeros(3, dtype=torch.float64)
    batches: Iterator[Batch] = iter(nodes.train_batches())
    for _ in range(num_steps):
        optimizer.zero_grad(set_to_none=True)
        batch = next(batches, None)
        if batch is not None:
            totals += _backward(model, batch)
        exchange.average_gradients(model, 0 if batch is None else len(batch.labels))
        optimizer.step()
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
