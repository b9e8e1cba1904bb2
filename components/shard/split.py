"""Training, validation and test rows of each site, by fractions."""

from collections.abc import Callable

import numpy as np

from ..ingest.graph import TEST, TRAIN, VALIDATION, Array

_ROUNDING = 1e-9
"""0.6 of 5 rows is 3, though 0.6 * 5 may come out above it."""


def by_fractions(
    sites: Array, classes: Array | None, train: float, validation: float, generator: np.random.Generator
) -> Array:
    """Divides the rows of each site by the same fractions, and so those of each class at a site.

    Shuffled rows are laid out by site and class and taken at even steps (systematic sampling, Madow & Madow
    1944): counts are within one row of the fractions at every site, also where classes are small.

    Args:
        sites: int64 [n], the site of each row.
        classes: int64 [n], or None to mix rows of all kinds.
        train: share to train on; each site gives at least one row.
        validation: share to validate on; the rest is for test.
        generator: where chance comes from.

    Returns:
        int8 [n], split codes.
    """
    order = generator.permutation(len(sites))
    keys = (sites[order],) if classes is None else (classes[order], sites[order])
    order = order[np.lexsort(keys)]
    codes = np.full(len(sites), TEST, dtype=np.int8)
    place = _place_in_group(sites[order])
    chosen = _steps(train)(place)
    codes[chosen] = TRAIN
    if train < 1:
        rest = np.flatnonzero(~chosen)
        place = _place_in_group(sites[order[rest]])
        codes[rest[_steps(validation / (1 - train))(place)]] = VALIDATION
    split = np.empty(len(sites), dtype=np.int8)
    split[order] = codes
    return split


def _place_in_group(groups: Array) -> Array:
    """Returns int64 [n], the place of each row among those of its group, which lie together."""
    starts = np.flatnonzero(np.diff(groups, prepend=-1))
    sizes = np.diff(starts, append=len(groups))
    return np.arange(len(groups)) - np.repeat(starts, sizes)


def _steps(fraction: float) -> Callable[[Array], Array]:
    def taken(count: Array) -> Array:
        return np.asarray(np.ceil(min(fraction, 1) * count - _ROUNDING))

    return lambda place: taken(place + 1) > taken(place)
