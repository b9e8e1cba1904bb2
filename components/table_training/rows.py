"""Which rows of its site a worker has, in which order it takes them, and how they enter a model.

Knows nothing of frameworks. All of it is a function of seed, worker and epoch, so that the same training can
be had again, and by one process too.
"""

from collections.abc import Sequence

import numpy as np

from ..ingest.graph import TRAIN, VALIDATION, Array
from ..shard.shards import SiteShard
from ..training.seeds import draw_seed

BRIGHTEST = np.float32(255)
"""What bytes are divided by."""


class WorkerRows:
    """One worker's rows of its site.

    Args:
        shard: the site's shard.
        worker: number of the worker at its site.
        num_workers: workers of the site; each has every `num_workers`-th row.

    Attributes:
        train: rows of the site that this worker trains on, int64 [n].
        validation: the site's validation rows, int64 [n].
        judged: rows that this worker judges at the end, of all splits, int64 [n].
    """

    def __init__(self, shard: SiteShard, worker: int, num_workers: int) -> None:
        split = shard.split()
        self._features, self._labels = shard.features(), shard.labels()
        self.split = split
        self.source_rows = shard.rows()
        self.train = np.flatnonzero(split == TRAIN)[worker::num_workers]
        self.validation = np.flatnonzero(split == VALIDATION)
        self.judged = np.arange(worker, shard.num_rows, num_workers)

    def take(self, rows: Array) -> tuple[Array, Array]:
        """Returns what a model is given of some rows.

        Args:
            rows: of the site, int64 [n].

        Returns:
            Features, float32 [n, ...], bytes scaled to [0, 1]; labels, int64 [n], for regression float32 [n].
        """
        return entering(self._features[rows]), self.labels(rows)

    def labels(self, rows: Array) -> Array:
        """Returns a copy of the labels of some rows; see `take`."""
        return np.array(self._labels[rows])


def entering(features: Array) -> Array:
    """Returns features as they enter a model: float32, bytes scaled to [0, 1]."""
    if features.dtype == np.uint8:
        return features.astype(np.float32) / BRIGHTEST
    return np.array(features, dtype=np.float32)


def steps_per_epoch(num_train: Sequence[int], num_workers: int, batch_size: int) -> int:
    """Returns the steps of an epoch at every worker: as many as the largest share of rows has batches.

    Args:
        num_train: training rows of each site.
        num_workers: workers of each site.
        batch_size: most rows of a batch.
    """
    largest = -(-max(num_train) // num_workers)
    return _num_batches(largest, batch_size)


def batches(rows: Array, batch_size: int, num_steps: int, *what: int) -> list[Array]:
    """Divides a worker's rows into an epoch's batches, in an order of their own.

    A worker of few rows takes its batches evenly among the steps, and has no row in the others: else its rows
    would be seen early in the training only, and those of large sites alone at its end.

    Args:
        rows: int64 [n], at least one.
        batch_size: most rows of a batch; batches with rows differ by one row at most, so that none is tiny.
        num_steps: steps of the epoch, at least as many as there are batches.
        what: what the order is for: seed, worker, epoch.

    Returns:
        One array a step, some perhaps empty.
    """
    order = np.random.default_rng(draw_seed(*what)).permutation(rows)
    cut = np.array_split(order, _num_batches(len(rows), batch_size))
    steps = [order[:0]] * num_steps
    for index, batch in enumerate(cut):
        steps[index * num_steps // len(cut)] = batch
    return steps


def _num_batches(num_rows: int, batch_size: int) -> int:
    return -(-num_rows // batch_size)
