"""Which processes of a tree each pod holds, and where they are reached. Knows no Kubernetes.

Groups of pods: `root`, one pod with all roots of `multigps(at=root)`, and one a site, named by its folder.
Pod i of a site holds its worker i; pod 0 also the site's aggregator, and the root that stands there.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ..._files import InputError
from ..topology import ROOT, Site, Topology, read
from ..transport.base import Address
from ..tree_job import TreeJob
from .site_pods import ROOT_PORT

WORKERS_PORT = 7300
"""Where a site's aggregator listens for the site's own workers."""
SITES_PORT = 7400
"""Where it listens for nodes of other sites."""


@dataclass(frozen=True, slots=True)
class Groups:
    """The groups of pods of a tree.

    Attributes:
        of_sites: name of each site's group; as it is a DNS label it is the site's folder, not its name.
    """

    of_sites: Mapping[str, str]

    def __post_init__(self) -> None:
        names = [ROOT, *self.of_sites.values()]
        if len(set(names)) != len(names):
            raise InputError(f"groups of pods are {names}, allowed: unlike names, none of a site {ROOT!r}")

    def site(self, group: str) -> str:
        """Returns the site of a group, "" for the roots'."""
        return next((site for site, named in self.of_sites.items() if named == group), "")


def topology_of_groups(
    options: Mapping[str, Any], workers: Mapping[str, int], groups: Groups, *, apart: bool = False
) -> Topology:
    """Returns a tree's topology in which a group's name stands for the address of its first pod.

    Args:
        options: the `topology` parameter's `root`, and `accepts` of sites: addresses that are reached from
            outside of a cluster; pods bind their own port of it.
        workers: number of workers by site.
        groups: the groups of pods.
        apart: whether sites are in clusters of their own, where only what `options` gives reaches from one
            to the other.

    Raises:
        InputError: an option is wrong.
    """
    given, binds = options.get("sites", {}), {}
    root = options.get("root", f"{ROOT}:{ROOT_PORT}")
    if "root" in options:
        binds[root] = f"{ROOT}:{ROOT_PORT}"
    sites = {}
    for site, group in groups.of_sites.items():
        sites[site] = {"listens": f"{group}:{WORKERS_PORT}"}
        accepts = given.get(site, {}).get("accepts")
        if accepts is not None:
            binds[accepts] = f"{group}:{SITES_PORT}"
        elif not apart:
            accepts = f"{group}:{SITES_PORT}"
        if accepts is not None:
            sites[site]["accepts"] = accepts
    return read({"root": root, "sites": sites, "binds": binds}, workers, free_ports=())


def in_pods(tree: TreeJob, addresses: Mapping[str, tuple[str, ...]]) -> TreeJob:
    """Returns a tree's job in which addresses of pods stand in the place of their groups' names.

    Args:
        tree: of a topology that `topology_of_groups` gave.
        addresses: IPv4 addresses of each group's pods that this pod can know.
    """

    def found(address: Address) -> Address:
        pods = addresses.get(address.host)
        return address if pods is None else Address(pods[0], address.port)

    def moved(site: Site) -> Site:
        accepts = None if site.accepts is None else found(site.accepts)
        return replace(site, listens=found(site.listens), accepts=accepts)

    shape = tree.topology
    topology = Topology(
        root=found(shape.root),
        sites=tuple(moved(site) for site in shape.sites),
        binds={reached: found(bound) for reached, bound in shape.binds.items()},
    )
    return replace(tree, topology=topology)


def members_in(tree: TreeJob, groups: Groups, group: str, index: int) -> frozenset[str]:
    """Returns the nodes and workers of a tree that a pod holds."""
    site = groups.site(group)
    if not site:
        return frozenset(root.name for root in tree.roots if root.site is None)
    worker = tree.topology.site(site).workers[index]
    if index:
        return frozenset((worker,))
    return frozenset((worker, site, *(root.name for root in tree.roots if root.site == site)))


def ports_of(tree: TreeJob, members: Iterable[str]) -> dict[str, int]:
    """Returns the ports that some nodes listen at, by a name that Kubernetes takes."""
    shape, held = tree.topology, set(members)
    ports = {root.name: root.binds.port for root in tree.roots if root.name in held and root.site is None}
    for site in shape.sites:
        if site.name in held:
            ports["workers"] = shape.bound(site.listens).port
            if site.accepts is not None:
                ports["sites"] = shape.bound(site.accepts).port
    return ports
