"""Random parts of equal size, each with its share of every split."""

import numpy as np

from ..ingest.graph import Array


def uniform(split: Array, num_parts: int, *, seed: int) -> Array:
    """Deals the shuffled nodes of each split to the parts in turn.

    Args:
        split: [n], the split of each node.
        num_parts: number of parts.
        seed: seed of the shuffle.

    Returns:
        int64 [n], the part of each node; sizes differ by at most one, and so does the share of each split.
    """
    generator = np.random.default_rng(seed)
    order = generator.permutation(len(split))
    order = order[np.argsort(split[order], kind="stable")]
    parts = np.empty(len(split), dtype=np.int64)
    parts[order] = np.arange(len(split)) % num_parts
    return parts
