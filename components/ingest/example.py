"""The built-in example: handwritten digits joined to those most like them; needs no download."""

import numpy as np

from .graph import Array

NEIGHBOURS = 8


def digit_images() -> tuple[Array, Array]:
    """Returns scikit-learn's 1,797 handwritten digits.

    Returns:
        Pixels divided by their maximum, float32 [n, 64]; labels int64 [n], the digit shown.
    """
    from sklearn.datasets import load_digits

    data = load_digits()
    return (data.data / 16).astype(np.float32), data.target.astype(np.int64)


def digits() -> tuple[Array, Array, Array]:
    """Returns scikit-learn's digits as a graph of nearest neighbours.

    Returns:
        Edges int64 [2, e] from each of the 1,797 digits to the 8 nearest by pixels; features float32 [n, 64]
        and labels int64 [n] as `digit_images`.
    """
    from sklearn.neighbors import kneighbors_graph

    features, labels = digit_images()
    near = kneighbors_graph(16 * features.astype(np.float64), NEIGHBOURS).tocoo()
    return np.stack([near.row, near.col]).astype(np.int64), features, labels
