"""Rows drawn at random, to compare models on where all real ones stay at their sites."""

import numpy as np

from ..ingest.graph import Array
from ..shard.shards import ArrayType
from .real_nodes import MOST_VALUES


def drawn_batches(feature_type: ArrayType, *, num_rows: int, seed: int) -> list[Array]:
    """Draws batches of the three sizes that `real_batches` reads.

    Args:
        feature_type: of a row's features: numbers are of a normal distribution, bytes any.
        num_rows: rows wanted.
        seed: seed of the draw.

    Returns:
        Features, [n, ...]: of all rows, of half of them, of one.
    """
    generator = np.random.default_rng(seed)
    most = max(1, MOST_VALUES // max(1, int(np.prod(feature_type.shape))))
    shape = (min(num_rows, most), *feature_type.shape)
    rows: Array = (
        generator.integers(0, 256, shape, dtype=np.uint8)
        if feature_type.dtype == "uint8"
        else generator.normal(size=shape).astype(feature_type.dtype)
    )
    return [rows, rows[: max(1, len(rows) // 2)], rows[:1]]
