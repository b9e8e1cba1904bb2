"""Averaging what a model measures rather than learns, such as the means and variances of BatchNorm."""

import numpy as np

from ..workers.plane import Flight, Plane
from .base import Replica

STATISTICS = "statistics"
"""Role of what is measured; never lossy, and no outer optimizer acts on it."""
LAST_STATISTICS = "last_statistics"
"""Role of what all workers have measured in the end, which waits for all also where a quorum is enough."""


def begin_statistics(
    replica: Replica, plane: Plane, num_samples: int, role: str = STATISTICS
) -> Flight | None:
    """Begins the mean over all workers, weighted by samples; None when the model measures nothing."""
    if not replica.statistics_layout.count:
        return None
    measured = replica.statistics() * np.float32(num_samples)
    return plane.mean(role, replica.statistics_layout, measured, num_samples)


def end_statistics(replica: Replica, flight: Flight | None) -> None:
    """Takes the mean over, once it has come."""
    mean = None if flight is None else flight.wait()
    if flight is not None and mean is not None and flight.weight:
        replica.set_statistics(mean)


def average_statistics(replica: Replica, plane: Plane, num_samples: int) -> None:
    """Replaces the statistics of all workers by their mean, weighted by samples; called in the end by all."""
    end_statistics(replica, begin_statistics(replica, plane, num_samples, LAST_STATISTICS))
