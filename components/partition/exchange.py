"""Evens out a second weight that METIS was not given, by exchanging nodes between parts.

The greedy exchange of Kernighan and Lin (1970), not continued past a worse cut: the pair of parts that differ
most swap the nodes that cost fewest cut edges. A swap leaves the number of nodes of each part as it was.
"""

import math
from typing import Any

import numpy as np

from ..ingest.graph import Array

SLACK = 0.05
"""Share by which a part may stay above or below the mean."""


def even_out(parts: Array, marked: Array, adjacency: Any, num_parts: int) -> Array:
    """Swaps marked nodes against others until each part holds about as many marked ones.

    Args:
        parts: int64 [n], the part of each node.
        marked: bool [n], the nodes to spread.
        adjacency: scipy sparse [n, n]; directions are ignored.
        num_parts: number of parts.

    Returns:
        int64 [n]. A part's number of marked nodes is within `SLACK` of the mean, or the next whole number.
        Part sizes are as before unless a part has nothing else to give back.
    """
    parts = parts.copy()
    mean = marked.sum() / num_parts
    most = max(math.ceil(mean), math.floor(mean * (1 + SLACK)))
    least = min(math.floor(mean), math.ceil(mean * (1 - SLACK)))
    while True:
        held = np.bincount(parts[marked], minlength=num_parts)
        rich, poor = int(held.argmax()), int(held.argmin())
        if held[rich] <= most and held[poor] >= least:
            return parts
        count = max(1, int(min(held[rich] - mean, mean - held[poor])))
        _swap(parts, marked, adjacency, (rich, poor), count)


def _swap(parts: Array, marked: Array, adjacency: Any, pair: tuple[int, int], count: int) -> None:
    rich, poor = pair
    sides = np.where(parts == poor, 1, 0) - np.where(parts == rich, 1, 0)
    pull = adjacency @ sides + adjacency.T @ sides
    leaving = np.flatnonzero(marked & (parts == rich))
    coming = np.flatnonzero(~marked & (parts == poor))
    leaving = leaving[np.argsort(-pull[leaving], kind="stable")[:count]]
    coming = coming[np.argsort(pull[coming], kind="stable")[:count]]
    parts[leaving], parts[coming] = poor, rich
