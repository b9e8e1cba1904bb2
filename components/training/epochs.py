"""What the epochs of a training gave, and which was the best. Knows nothing of models."""

import math
from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class EpochRow:
    """What one epoch gave, over all workers; NaN where nothing was measured."""

    epoch: int
    """From 1."""
    train_loss: float = math.nan
    """Mean cross entropy over the training nodes, while training."""
    train_accuracy: float = math.nan
    """Accuracy over the training nodes, while training (with dropout and sampled neighbours)."""
    val_loss: float = math.nan
    """Mean cross entropy over the validation nodes."""
    val_accuracy: float = math.nan
    """Accuracy over the validation nodes, with all their neighbours."""
    seconds: float = math.nan
    """Time of training and validation on this worker."""

    def finite(self) -> dict[str, float]:
        """Returns the values that were measured; `EpochRow(**row.finite())` equals `row`."""
        return {name: value for name, value in asdict(self).items() if math.isfinite(value)}


LOSS_PROGRESS = 0.9
"""A validation loss below this share of the last that counted is progress, though no accuracy rose."""


@dataclass(slots=True)
class BestEpoch:
    """The best epoch so far: by validation accuracy, equal ones by validation loss.

    Patience counts from `progress_epoch`: a loss that creeps down while no node is classified otherwise would
    keep a training going that has nothing left to gain.
    """

    epoch: int = 0
    """The best epoch; 0 before the first validation."""
    accuracy: float = -math.inf
    """Its validation accuracy."""
    loss: float = math.inf
    """Its validation loss."""
    progress_epoch: int = 0
    """The last epoch that made progress."""
    progress_loss: float = math.inf
    """The lowest validation loss that counted as progress."""

    @classmethod
    def of(cls, history: list[EpochRow]) -> "BestEpoch":
        """Returns the best of epochs that have been."""
        best = cls()
        for row in history:
            best.takes(row)
        return best

    def takes(self, row: EpochRow) -> bool:
        """Looks at the next epoch, and tells whether it is the best so far."""
        if math.isnan(row.val_accuracy):
            return False
        if row.val_accuracy > self.accuracy or row.val_loss < LOSS_PROGRESS * self.progress_loss:
            self.progress_epoch, self.progress_loss = row.epoch, min(row.val_loss, self.progress_loss)
        better = (row.val_accuracy, -row.val_loss) > (self.accuracy, -self.loss)
        if better:
            self.epoch, self.accuracy, self.loss = row.epoch, row.val_accuracy, row.val_loss
        return better

    def is_stale(self, epoch: int, patience: int) -> bool:
        """Tells whether `patience` epochs (0: no number of them) have brought no progress after `epoch`."""
        return bool(patience and self.epoch and epoch - self.progress_epoch >= patience)
