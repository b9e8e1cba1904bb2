"""Real rows to compare models on. Knows nothing of formats."""

import numpy as np

from ..ingest.graph import TEST, Array
from ..shard.shards import SiteShard
from .real_nodes import MOST_VALUES


def real_batches(site: SiteShard, *, num_rows: int, seed: int) -> list[Array]:
    """Reads batches of three sizes, of which a format with its size baked in can fit one at most.

    Args:
        site: where the rows are from.
        num_rows: rows wanted, those of the test split first.
        seed: seed of the choice.

    Returns:
        Features as they lie, [n, ...]: of all those rows, of half of them, of one.
    """
    generator = np.random.default_rng(seed)
    is_test = site.split() == TEST
    order = np.concatenate([generator.permutation(np.flatnonzero(mask)) for mask in (is_test, ~is_test)])
    most = max(1, MOST_VALUES // max(1, int(np.prod(site.feature_type.shape))))
    rows: Array = np.array(site.features()[order[: min(num_rows, most)]])
    return [rows, rows[: max(1, len(rows) // 2)], rows[:1]]
