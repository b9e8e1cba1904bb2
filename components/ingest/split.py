"""Training, validation and test nodes by fractions, alike in every class."""

import numpy as np

from .graph import TEST, TRAIN, VALIDATION, Array


def stratified(labels: Array, train: float, validation: float, seed: int) -> Array:
    """Divides the labelled nodes of each class by the same fractions.

    Args:
        labels: int64 [n], -1 = none.
        train: share to train on; each class gives at least one node.
        validation: share to validate on; the rest is for test.
        seed: seed of the order.

    Returns:
        int8 [n], split codes; nodes without a label are in none.
    """
    order = np.random.default_rng(seed).permutation(len(labels))
    split = np.zeros(len(labels), dtype=np.int8)
    for label in np.unique(labels[labels >= 0]):
        members = order[labels[order] == label]
        place = (np.arange(len(members)) + 0.5) / len(members)
        codes = np.where(place < train, TRAIN, np.where(place < train + validation, VALIDATION, TEST))
        codes[0] = TRAIN
        split[members] = codes
    return split
