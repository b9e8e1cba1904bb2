"""The roots of a tree with several: their names, where they listen, and whom they stand beside.

The first is the root of every tree; it ends all rounds but those of the tensors that others hold.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from ..._files import InputError
from ..errors import ProtocolError
from ..scheduling import transmission
from ..scheduling.placement import AT_ROOT, MultiGps
from ..topology import ROOT, Topology
from ..transport.base import Address
from ..wire.units import RoundId, shard_of, whole_scope
from .route import Route, TreeRouter


@dataclass(frozen=True, slots=True)
class Shard:
    """One root.

    Attributes:
        name: its node.
        address: where the sites reach it.
        binds: where it listens for them.
        site: the site that it is at; None beside the first root.
    """

    name: str
    address: Address
    binds: Address
    site: str | None = None


def shards_of(topology: Topology, chosen: MultiGps | None) -> tuple[Shard, ...]:
    """Returns the roots of a tree, the first one first.

    Raises:
        InputError: more are to be at sites than sites accept connections, or a port is none.
    """
    first = Shard(ROOT, topology.root, topology.bound(topology.root))
    if chosen is None:
        return (first,)
    names = [f"{ROOT}-{number}" for number in range(1, chosen.shards)]
    taken = {site.name for site in topology.sites}
    if clash := sorted(taken.intersection(names)):
        raise InputError(f"transmission: multigps names a root {clash[0]!r}, allowed: no site of that name")
    if chosen.at == AT_ROOT:
        host, port = topology.root.host, topology.root.port
        if max(port, first.binds.port) + len(names) > 65535:
            raise InputError(
                f"topology root is {topology.root}, allowed with multigps(shards={chosen.shards}, at=root): "
                f"a port of at most {65535 - len(names)}, as the others follow it"
            )
        return (
            first,
            *(
                Shard(name, Address(host, port + n), Address(first.binds.host, first.binds.port + n))
                for n, name in enumerate(names, start=1)
            ),
        )
    accepting = [(site.name, site.accepts) for site in topology.sites if site.accepts is not None]
    chosen.check_sites(len(accepting))
    at_sites = zip(names, accepting, strict=False)
    return (
        first,
        *(Shard(name, address, topology.bound(address), site) for name, (site, address) in at_sites),
    )


def root_names(topology: Topology, chosen: str) -> tuple[str, ...]:
    """Returns the nodes of the roots, the first one first.

    Args:
        topology: the tree.
        chosen: its `transmission`.

    Raises:
        InputError: see `shards_of`.
    """
    return tuple(root.name for root in shards_of(topology, transmission(chosen).multigps))


class ShardRouter:
    """See `Router`; the tree's routes, ending at the root that the scope's shard names.

    Args:
        topology: the tree.
        roots: the nodes of the roots, the first one first.
    """

    def __init__(self, topology: Topology, roots: tuple[str, ...]) -> None:
        self._tree = TreeRouter(topology)
        self._roots = roots
        self._moved: dict[str, Route] = {}

    def route(self, round_id: RoundId, node: str) -> Route:
        """See `Router`."""
        shard = shard_of(round_id.scope)
        if shard == 0:
            return self._tree.route(round_id, node)
        if shard >= len(self._roots):
            raise ProtocolError(f"{round_id} is of root {shard + 1}, and there are {len(self._roots)}")
        route = self._moved.get(round_id.scope)
        if route is None:
            whole = RoundId(whole_scope(round_id.scope), round_id.unit, round_id.number)
            route = _moved(self._tree.route(whole, node), self._roots[shard])
            self._moved[round_id.scope] = route
        return route


def _moved(route: Route, root: str) -> Route:
    hops: Mapping[str, str | None] = {
        (root if node == ROOT else node): (root if hop == ROOT else hop)
        for node, hop in route.next_hops.items()
    }
    return Route(hops, route.sources)
