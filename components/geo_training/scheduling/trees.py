"""Trees over which sites send to a root, and how long one takes. Pure; knows no network and no rounds.

A tree is `parent by node`: each site hands on to its parent, and the chain of parents ends at the root. The
same tree read downwards tells from whom a site gets the result.

What is sent goes in pieces, and a node hands a piece on as soon as it has it of all its children. So the
time of a tree with links of cost c (seconds for all that is sent) and K pieces is the largest over all sites,
with c over the links from the site to the root, of::

    sum(c) / K  +  (K - 1) / K * max(c)

Long ways cost little where there are many pieces; the slowest link costs whole.

Sources: the tree of least time is sought by shortest ways below bounds of the slowest link (as Pollack, *The
Maximum Capacity Through a Network*, Operations Research 1960, has them widest). That sites relay for each
other is TSEngine: Zhou et al., *TSEngine: Enable Efficient Communication Overlay in Distributed Machine
Learning in WANs*, IEEE TNSM 2021.
"""

import heapq
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import TypeAlias

_MOST_BOUNDS = 32
"""Bounds of the slowest link that are tried; of more links evenly many."""

Tree: TypeAlias = Mapping[str, str]
"""Parent by site."""
Cost: TypeAlias = Callable[[str, str], float]
"""Seconds from a site to its parent, or the other way; infinite where they cannot send."""


def way(tree: Tree, site: str, root: str) -> list[str]:
    """Returns the nodes from a site to the root, both included.

    Raises:
        ValueError: the parents lead in a circle, or to a node that has none.
    """
    nodes = [site]
    while nodes[-1] != root:
        parent = tree.get(nodes[-1])
        if parent is None or parent in nodes:
            raise ValueError(f"no way from {site} to {root}: {' '.join(nodes)} {parent}")
        nodes.append(parent)
    return nodes


def seconds(tree: Tree, root: str, cost: Cost, pieces: int) -> float:
    """Returns how long a tree takes; see the module."""
    slowest = 0.0
    for site in tree:
        nodes = way(tree, site, root)
        costs = [cost(child, parent) for child, parent in pairwise(nodes)]
        slowest = max(slowest, _along(sum(costs), max(costs), pieces))
    return slowest


def quickest(sites: Sequence[str], root: str, cost: Cost, pieces: int) -> dict[str, str]:
    """Returns the tree of least time, or one near it.

    Args:
        sites: all sites.
        root: where the tree ends; every site can send there, at any finite cost.
        cost: of each link.
        pieces: in how many pieces all is sent.
    """
    costs = {cost(site, parent) for site in sites for parent in (root, *sites) if site != parent}
    bounds = sorted(filter(math.isfinite, costs))
    trees = [_below(math.inf, sites, root, cost, pieces)]
    for bound in bounds[:: math.ceil(len(bounds) / _MOST_BOUNDS)]:
        trees += [_below(bound, sites, root, cost, pieces), _below(bound, sites, root, cost, 1)]
    whole = [tree for tree in trees if len(tree) == len(sites)]
    return min(whole, key=lambda tree: (seconds(tree, root, cost, pieces), _hops(tree, root)))


def joined(wanted: Iterable[tuple[str, str]], rest: Tree, root: str) -> dict[str, str]:
    """Returns a tree with as many of some links as fit in one, in their order; else as another has it.

    Args:
        wanted: links as (site, parent).
        rest: a tree of all sites, for those that none of the links is from.
        root: where both trees end.
    """
    tree: dict[str, str] = {}
    for site, parent in wanted:
        if site in rest and site not in tree and not _leads(tree, parent, site):
            tree[site] = parent
    for site, parent in rest.items():
        if site not in tree:
            tree[site] = root if _leads(tree, parent, site) else parent
    return tree


def _below(bound: float, sites: Sequence[str], root: str, cost: Cost, pieces: int) -> dict[str, str]:
    """Returns the shortest ways to the root over links of at most `bound`; sites without one are left out."""
    tree: dict[str, str] = {}
    reached = {root}
    queue = [(cost(site, root), 1, cost(site, root), cost(site, root), site, root) for site in sites]
    queue = [entry for entry in queue if entry[2] <= bound]
    heapq.heapify(queue)
    while queue:
        _, hops, total, most, site, parent = heapq.heappop(queue)
        if site in reached or not math.isfinite(total):
            continue
        reached.add(site)
        tree[site] = parent
        for other in sites:
            if other in reached or (step := cost(other, site)) > bound:
                continue
            length, widest = total + step, max(most, step)
            entry = (_along(length, widest, pieces), hops + 1, length, widest, other, site)
            heapq.heappush(queue, entry)
    return tree


def _along(total: float, most: float, pieces: int) -> float:
    return total / pieces + (pieces - 1) / pieces * most


def _hops(tree: Tree, root: str) -> int:
    return sum(len(way(tree, site, root)) for site in tree)


def _leads(tree: Tree, node: str | None, to: str) -> bool:
    """Tells whether the parents of `node`, as far as they are known, come to `to`."""
    while node is not None:
        if node == to:
            return True
        node = tree.get(node)
    return False
