"""How many rows of each class a site holds, and how far sites are from being alike."""

import numpy as np

from ..ingest.graph import Array


def class_counts(sites: Array, labels: Array, num_sites: int, num_classes: int) -> Array:
    """Returns int64 [num_sites, num_classes], rows of each class at each site."""
    cells = sites * num_classes + labels
    return np.bincount(cells, minlength=num_sites * num_classes).reshape(num_sites, num_classes)


def distances(counts: Array) -> Array:
    """Returns float64 [sites], the total variation distance of each site's classes from all rows' classes.

    0 = the same mix; towards 1 = classes that are rare elsewhere.

    Args:
        counts: int [sites, classes], no site without a row.
    """
    whole = counts.sum(axis=0) / counts.sum()
    shares = counts / counts.sum(axis=1, keepdims=True)
    return np.asarray(np.abs(shares - whole).sum(axis=1) / 2)


def label_skew(counts: Array) -> float:
    """Returns the mean of `distances`, each site weighted by its rows."""
    return float(np.average(distances(counts), weights=counts.sum(axis=1)))


def variance_between(sites: Array, labels: Array) -> float:
    """Returns the share of the labels' variance that lies between sites (correlation ratio, Pearson 1905).

    Args:
        sites: int64 [n], the site of each row.
        labels: float32 [n].

    Returns:
        0 = all sites have the same mean; 1 = a site's labels are all alike. 0 where all labels are.
    """
    if labels.min() == labels.max():
        return 0.0
    values = labels.astype(np.float64)
    sizes = np.bincount(sites)
    means = np.bincount(sites, weights=values) / np.maximum(1, sizes)
    total = float(((values - values.mean()) ** 2).sum())
    between = float((sizes * (means - values.mean()) ** 2).sum())
    return min(1.0, between / total)
