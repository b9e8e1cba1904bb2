"""Full synchronisation at both levels (FSA, HiPS of GeoMX): every worker of every site in every step.

Each step's gradient is the mean over all samples of all workers, so training equals one process on the joined
batch.
"""

from dataclasses import dataclass

import numpy as np

from ..messages import Array
from ..plane import Plane
from .base import Replica, Update
from .ending import Ask, stay_until_all_are_done
from .statistics import average_statistics

GRADIENT = "gradient"
"""Role of a gradient; a compression may lose some of it."""


class FullAtWorker:
    """See `WorkerPolicy`: every worker steps its own replica of the optimizer with the same numbers."""

    def begin(self, replica: Replica, plane: Plane, update: Update) -> None:
        """See `WorkerPolicy`."""
        self._replica, self._plane, self._update = replica, plane, update
        self._samples = 0

    def step(self, gradient: Array | None, num_samples: int) -> None:
        """See `WorkerPolicy`."""
        self._samples += num_samples
        mean = self._plane.mean(GRADIENT, self._replica.layout, gradient, num_samples).wait()
        self._update(np.zeros(self._replica.layout.count, np.float32) if mean is None else mean)

    def agreed(self) -> None:
        """See `WorkerPolicy`."""

    def finish(self) -> None:
        """See `WorkerPolicy`; goes on stepping with the others, then averages what each has measured."""
        ask = Ask(GRADIENT, self._replica.layout)
        stay_until_all_are_done(self._plane, {ask: None}, lambda _ask, mean, _weight: self._update(mean))
        average_statistics(self._replica, self._plane, self._samples)


@dataclass(frozen=True, kw_only=True, slots=True)
class Fsa:
    """Averages the gradient over all workers of all sites in every step."""

    def worker(self) -> FullAtWorker:
        """Returns the worker's end."""
        return FullAtWorker()
