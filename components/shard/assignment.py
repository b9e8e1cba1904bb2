"""Who gets which rows: one function a method, and what holds for all of them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from .._files import InputError
from ..ingest.graph import Array
from .config import ShardConfig
from .rows import Rows


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Assignment:
    """The site of each row."""

    sites: Array
    """int64 [n], index into site_names; no site is without a row."""
    site_names: tuple[str, ...]
    """Name of each site."""


def assign(rows: Rows, config: ShardConfig, generator: np.random.Generator) -> Assignment:
    """Gives each row to one site.

    Args:
        rows: what to divide.
        config: how.
        generator: where chance comes from.

    Raises:
        InputError: there are fewer rows, classes or named sites than `num_sites` needs.
    """
    if config.method == "by_column":
        return _by_column(rows, config)
    if rows.num_rows < config.num_sites:
        raise InputError(
            f"num_sites is {config.num_sites} but {rows.source} has {rows.num_rows} rows; "
            f"allowed: at most {rows.num_rows}"
        )
    names = tuple(config.site_names) or tuple(f"site-{i}" for i in range(config.num_sites))
    return Assignment(sites=_METHODS[config.method](rows, config, generator), site_names=names)


def iid(rows: Rows, config: ShardConfig, generator: np.random.Generator) -> Array:
    """Deals shuffled rows in turn: sizes differ by at most one, and chance alone mixes the classes."""
    sites = np.empty(rows.num_rows, dtype=np.int64)
    sites[generator.permutation(rows.num_rows)] = np.arange(rows.num_rows) % config.num_sites
    return sites


def by_class(rows: Rows, config: ShardConfig, _generator: np.random.Generator) -> Array:
    """Gives each class to one site, the largest class first, each to the site with fewest rows by then.

    The rule is list scheduling by longest time (Graham 1969): the largest site has at most 4/3 of what the
    best division gives it. Chance plays no part.

    Raises:
        InputError: there are more sites than classes.
    """
    num_classes = len(rows.label_names)
    if num_classes < config.num_sites:
        raise InputError(
            f"num_sites is {config.num_sites} but {rows.source} has {num_classes} classes; "
            f"allowed with method 'by_class': at most {num_classes}"
        )
    sizes = np.bincount(rows.labels, minlength=num_classes)
    held = np.zeros(config.num_sites, dtype=np.int64)
    site_of = np.empty(num_classes, dtype=np.int64)
    for label in np.argsort(-sizes, kind="stable"):
        site_of[label] = held.argmin()
        held[site_of[label]] += sizes[label]
    chosen: Array = site_of[rows.labels]
    return chosen


def dirichlet(rows: Rows, config: ShardConfig, generator: np.random.Generator) -> Array:
    """Divides each class by shares drawn from a symmetric Dirichlet distribution (Yurochkin et al. 2019).

    A site that draws no row at all gets one of the largest site.
    """
    sites = np.empty(rows.num_rows, dtype=np.int64)
    order = generator.permutation(rows.num_rows)
    order = order[np.argsort(rows.labels[order], kind="stable")]
    starts = np.searchsorted(rows.labels[order], np.arange(len(rows.label_names) + 1))
    for first, end in pairwise(starts):
        shares = generator.dirichlet(np.full(config.num_sites, config.alpha))
        bounds = np.rint(shares.cumsum()[:-1] * (end - first)).astype(np.int64)
        sites[order[first:end]] = np.searchsorted(bounds, np.arange(end - first), side="right")
    _fill_empty(sites, config.num_sites)
    return sites


_METHODS: Mapping[str, Callable[[Rows, ShardConfig, np.random.Generator], Array]] = {
    "iid": iid,
    "by_class": by_class,
    "dirichlet": dirichlet,
}


def _by_column(rows: Rows, config: ShardConfig) -> Assignment:
    assert rows.sites is not None
    found = len(rows.site_names)
    if config.num_sites not in (0, found):
        some = ", ".join(rows.site_names[:8]) + (", ..." if found > 8 else "")
        raise InputError(
            f"num_sites is {config.num_sites} but {config.site_column!r} names {found} sites ({some}); "
            f"allowed with method 'by_column': {found}, or 0 for as many as there are"
        )
    return Assignment(sites=rows.sites, site_names=rows.site_names)


def _fill_empty(sites: Array, num_sites: int) -> None:
    sizes = np.bincount(sites, minlength=num_sites)
    for empty in np.flatnonzero(sizes == 0):
        largest = sizes.argmax()
        sites[np.flatnonzero(sites == largest)[-1]] = empty
        sizes[largest] -= 1
        sizes[empty] += 1
