"""Where a contribution goes next in a round: asked per round, so that a route may change between rounds.

Knows nothing of networks. The route is no property of a node: the same aggregator ends one round and forwards
another.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from ..errors import ProtocolError
from ..topology import ROOT, Topology
from ..wire.units import OWN, SITE, TREE, RoundId


@dataclass(frozen=True)
class Route:
    """The way of one round: who hands to whom.

    Attributes:
        next_hops: for each node in the round the node that it hands its aggregate to; None where the round
            ends.
        sources: the workers, whose contributions must arrive.
    """

    next_hops: Mapping[str, str | None]
    sources: frozenset[str]

    @cached_property
    def _through(self) -> dict[str, frozenset[str]]:
        through: dict[str, set[str]] = {node: set() for node in self.next_hops}
        for source in self.sources:
            node: str | None = source
            while node is not None:
                through[node].add(source)
                node = self.next_hops[node]
        return {node: frozenset(sources) for node, sources in through.items()}

    def next_hop(self, node: str) -> str | None:
        """Returns whom `node` hands the round's aggregate to, None when the round ends there."""
        return self.next_hops[node]

    def expected(self, node: str) -> frozenset[str]:
        """Returns the workers whose contributions pass through `node`; empty when it has no part."""
        return self._through.get(node, frozenset())


class Router(Protocol):
    """Gives the route of a round; every node of a round must get the same one."""

    def route(self, round_id: RoundId, node: str) -> Route:
        """Returns the round's route as far as it concerns `node`.

        Raises:
            ProtocolError: the round's scope is not known.
        """


class TreeRouter:
    """The tree of the topology in every round.

    Scope `site` ends at the site's aggregator; `own <site>` joins that site's workers and ends at the root.
    """

    def __init__(self, topology: Topology) -> None:
        self._tree = Route(
            {
                **{worker: site.name for site in topology.sites for worker in site.workers},
                **{site.name: ROOT for site in topology.sites},
                ROOT: None,
            },
            frozenset(topology.workers),
        )
        self._sites = {
            site.name: Route(
                {**{worker: site.name for worker in site.workers}, site.name: None}, frozenset(site.workers)
            )
            for site in topology.sites
        }

        self._own = {
            f"{OWN}{site.name}": Route(
                {**{worker: site.name for worker in site.workers}, site.name: ROOT, ROOT: None},
                frozenset(site.workers),
            )
            for site in topology.sites
        }

    def route(self, round_id: RoundId, node: str) -> Route:
        """See `Router`."""
        if round_id.scope == TREE:
            return self._tree
        site = self._sites.get(node.partition("/")[0])
        if round_id.scope == SITE and site is not None:
            return site
        own = self._own.get(round_id.scope)
        if own is not None:
            return own
        raise ProtocolError(f"{round_id} has no route through {node}")
