"""The built-in example: handwritten digits joined to those most like them; needs no download."""

import numpy as np

from .graph import Array

NEIGHBOURS = 8


def digits() -> tuple[Array, Array, Array]:
    """Returns scikit-learn's digits as a graph of nearest neighbours.

    Returns:
        Edges int64 [2, e] from each of the 1,797 digits to the 8 nearest by pixels; features float32 [n, 64],
        the pixels divided by their maximum; labels int64 [n], the digit shown.
    """
    from sklearn.datasets import load_digits
    from sklearn.neighbors import kneighbors_graph

    data = load_digits()
    near = kneighbors_graph(data.data, NEIGHBOURS).tocoo()
    edges = np.stack([near.row, near.col]).astype(np.int64)
    return edges, (data.data / 16).astype(np.float32), data.target.astype(np.int64)
