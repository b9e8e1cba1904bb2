"""Sites, their workers, and where the tree's nodes listen. Knows nothing of sockets or rounds.

Names of nodes: `root`, a site's name in the partitions (`site-0`), a worker of it (`site-0/trainer-1`).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .._files import InputError
from .transport.base import Address

ROOT = "root"
LOOPBACK = "127.0.0.1"
MANY = 1 << 16
"""Stands for the number of sites that accept others where it is known only with the data."""
_OF_SITE = ("listens", "accepts")


@dataclass(frozen=True, slots=True)
class Site:
    """One site.

    Attributes:
        name: the site's node, which is its aggregator.
        num_workers: workers of the site.
        listens: where its aggregator listens for the site's own workers.
        accepts: where nodes of other sites reach it; only such a site may be a relay or a shard. None for a
            site that only dials out.
    """

    name: str
    num_workers: int
    listens: Address
    accepts: Address | None = None

    @property
    def workers(self) -> tuple[str, ...]:
        """Names of the workers."""
        return tuple(f"{self.name}/trainer-{index}" for index in range(self.num_workers))


@dataclass(frozen=True, slots=True)
class Topology:
    """The tree: every site's aggregator dials the root, every worker its site's aggregator.

    Attributes:
        root: where the root listens for the sites.
        sites: the sites, in the partitions' order.
        binds: where a node binds that others reach at an address, as it is behind a Kubernetes Service or a
            NAT; who is not named binds what others dial.
    """

    root: Address
    sites: tuple[Site, ...]
    binds: Mapping[Address, Address] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        names = [site.name for site in self.sites]
        if not names or len(set(names)) != len(names) or ROOT in names or any("/" in name for name in names):
            raise InputError(
                f"sites are {names}, allowed: one or more, unlike names without '/', none {ROOT!r}"
            )
        addresses = [str(address) for address in self.addresses]
        if len(set(addresses)) != len(addresses):
            raise InputError(f"topology listens at {addresses}, allowed: each address once")

    def bound(self, address: Address) -> Address:
        """Returns where the node binds that others reach at an address."""
        return self.binds.get(address, address)

    @property
    def addresses(self) -> tuple[Address, ...]:
        """All addresses that nodes are reached at."""
        accepts = (site.accepts for site in self.sites if site.accepts is not None)
        return (self.root, *(site.listens for site in self.sites), *accepts)

    @property
    def accepting(self) -> tuple[Site, ...]:
        """The sites that nodes of other sites may dial."""
        return tuple(site for site in self.sites if site.accepts is not None)

    @property
    def workers(self) -> tuple[str, ...]:
        """Names of all workers, site by site."""
        return tuple(worker for site in self.sites for worker in site.workers)

    def site(self, name: str) -> Site:
        """Returns the site of a node name (its own or a worker's)."""
        return next(site for site in self.sites if site.name == name.partition("/")[0])

    def children(self, node: str) -> tuple[str, ...]:
        """Returns the nodes that dial `node`."""
        return tuple(s.name for s in self.sites) if node == ROOT else self.site(node).workers

    def address(self, node: str) -> Address:
        """Returns where an aggregator listens."""
        return self.root if node == ROOT else self.site(node).listens

    def to_dict(self) -> dict[str, Any]:
        """Returns the form that `read` reads, whole."""
        binds = {str(reached): str(bound) for reached, bound in self.binds.items()}
        shown = {"root": str(self.root), "sites": {site.name: _shown(site) for site in self.sites}}
        return {**shown, "binds": binds} if binds else shown


def check(options: Mapping[str, Any]) -> tuple[Address, ...]:
    """Checks the `topology` parameter as far as it can be without knowing the sites.

    Returns:
        The addresses that it gives, also those that nodes bind.

    Raises:
        InputError: a key that does not exist, an address that is none, or one that two nodes listen at.
    """
    _allowed("topology", options, ("root", "sites", "binds"))
    given = [("topology['root']", options["root"])] if "root" in options else []
    sites = options.get("sites", {})
    if not isinstance(sites, Mapping):
        raise InputError(f"topology['sites'] is {sites!r}, allowed: a mapping of site names")
    for name, site in sites.items():
        option = f"topology['sites'][{name!r}]"
        _allowed(option, site, _OF_SITE)
        given += [(f"{option}[{key!r}]", site[key]) for key in _OF_SITE if key in site]
    addresses = _checked_addresses(given)
    return (*addresses, *_binds(options, addresses).values())


def num_accepting(options: Mapping[str, Any]) -> int:
    """Returns how many sites of a `topology` parameter that `check` passed accept other sites."""
    return sum("accepts" in site for site in options.get("sites", {}).values())


def read(options: Mapping[str, Any], workers: Mapping[str, int], free_ports: Sequence[int]) -> Topology:
    """Makes the topology of a run from the `topology` parameter; empty means all on this machine.

    Args:
        options: `{"root": "host:port", "sites": {"site-0": {"listens": "host:port", "accepts":
            "host:port"}}, "binds": {"host:port": "host:port"}}`, each part optional.
        workers: number of workers by site name.
        free_ports: ports of this machine for the nodes that `options` gives no address, one a site and one
            more.

    Raises:
        InputError: an option is wrong, or names a site that does not exist.
    """
    check(options)
    sites = options.get("sites", {})
    if unknown := sorted(set(sites) - set(workers)):
        raise InputError(f"topology['sites'] names {unknown}, allowed: {sorted(workers)}")
    ports = iter(free_ports)

    def address(given: Mapping[str, Any], key: str) -> Address:
        if key in given:
            return Address.parse(given[key], f"topology {key}")
        return Address(LOOPBACK, next(ports))

    return Topology(
        root=address(options, "root"),
        sites=tuple(
            Site(name, n, address(sites.get(name, {}), "listens"), _accepts(sites.get(name, {})))
            for name, n in workers.items()
        ),
        binds=_binds(options),
    )


def _binds(options: Mapping[str, Any], reached: Sequence[Address] | None = None) -> dict[Address, Address]:
    option, given = "topology['binds']", options.get("binds", {})
    if not isinstance(given, Mapping):
        raise InputError(f"{option} is {given!r}, allowed: a mapping of addresses of the topology to others")
    binds = {
        Address.parse(text, option): Address.parse(bound, f"{option}[{text!r}]")
        for text, bound in given.items()
    }
    if reached is not None and (unknown := [str(address) for address in binds if address not in reached]):
        allowed = [str(address) for address in reached]
        raise InputError(f"{option} names {unknown}, allowed: addresses that the topology gives: {allowed}")
    return binds


def _accepts(given: Mapping[str, Any]) -> Address | None:
    return Address.parse(given["accepts"], "topology accepts") if "accepts" in given else None


def _shown(site: Site) -> dict[str, str]:
    accepts = {} if site.accepts is None else {"accepts": str(site.accepts)}
    return {"listens": str(site.listens), **accepts}


def _checked_addresses(given: Iterable[tuple[str, Any]]) -> tuple[Address, ...]:
    taken: dict[Address, str] = {}
    for option, text in given:
        address = Address.parse(text, option)
        if address in taken:
            raise InputError(f"{option} is {text!r}, allowed: another address than {taken[address]}")
        taken[address] = option
    return tuple(taken)


def _allowed(option: str, value: Any, keys: tuple[str, ...]) -> None:
    if not isinstance(value, Mapping):
        raise InputError(f"{option} is {value!r}, allowed: a mapping with {', '.join(keys)}")
    if unknown := sorted(set(value) - set(keys)):
        raise InputError(f"{option} has {unknown}, allowed: {', '.join(keys)}")
