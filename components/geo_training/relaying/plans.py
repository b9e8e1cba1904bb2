"""The trees of each round as the root planned them, and the routes that follow. Pure; knows no network."""

from functools import lru_cache

from ..errors import ProtocolError
from ..nodes.route import Route, Router
from ..scheduling.trees import Tree, way
from ..topology import ROOT, Topology
from ..wire.relay_messages import Plan, Trees
from ..wire.units import DELTA, GRADIENT, TREE, RoundId

REMEMBERED = 64
"""Plans that are kept, back from the newest."""


def planned(round_id: RoundId) -> bool:
    """Tells whether a round may have a plan: what is large and comes again and again has."""
    return round_id.scope == TREE and round_id.unit.role in (GRADIENT, DELTA)


class Plans:
    """The plans that a node knows; a `Router`, whose rounds without one go by the topology's tree.

    Args:
        topology: the sites and their workers.
        otherwise: routes all other rounds.
    """

    def __init__(self, topology: Topology, otherwise: Router) -> None:
        self._topology = topology
        self._otherwise = otherwise
        self._plans: dict[int, Plan] = {}
        self._route = lru_cache(maxsize=REMEMBERED)(self._routed)

    def add(self, plan: Plan) -> bool:
        """Takes in a plan; returns whether it is new.

        Raises:
            ProtocolError: one of its trees does not join all sites to the root.
        """
        if plan.number in self._plans:
            return False
        for trees in (plan.best, plan.trial):
            for tree in (trees.up, trees.down):
                self._check(plan.number, tree)
        self._plans[plan.number] = plan
        for number in [n for n in self._plans if n <= max(self._plans) - REMEMBERED]:
            del self._plans[number]
        return True

    def plan(self, number: int) -> Plan | None:
        """Returns the plan of a round; None where there is none, or no more."""
        return self._plans.get(number)

    def trees(self, round_id: RoundId) -> Trees | None:
        """Returns the trees of a round; None where it goes by the topology's tree."""
        plan = self._plans.get(round_id.number) if planned(round_id) else None
        if plan is None:
            return None
        return plan.trial if round_id.unit in plan.units else plan.best

    def route(self, round_id: RoundId, node: str) -> Route:
        """See `Router`."""
        trees = self.trees(round_id)
        if trees is None:
            return self._otherwise.route(round_id, node)
        return self._route(tuple(sorted(trees.up.items())))

    def gives(self, round_id: RoundId, node: str) -> str:
        """Returns from whom `node`, a site, gets a round's result."""
        trees = self.trees(round_id)
        return ROOT if trees is None else trees.down[node]

    def gets_from(self, round_id: RoundId, node: str) -> tuple[str, ...]:
        """Returns the sites that get a round's result from `node`, sorted."""
        trees = self.trees(round_id)
        return () if trees is None else tuple(sorted(s for s, giver in trees.down.items() if giver == node))

    def _routed(self, up: tuple[tuple[str, str], ...]) -> Route:
        sites = self._topology.sites
        inside = {worker: site.name for site in sites for worker in site.workers}
        return Route({**inside, **dict(up), ROOT: None}, frozenset(inside))

    def _check(self, number: int, tree: Tree) -> None:
        names, accepting = {s.name for s in self._topology.sites}, {s.name for s in self._topology.accepting}
        try:
            if set(tree) != names:
                raise ValueError(f"it has {sorted(tree)}")
            for site in tree:
                if any(node not in accepting for node in way(tree, site, ROOT)[1:-1]):
                    raise ValueError("a site relays that accepts nobody")
        except ValueError as error:
            raise ProtocolError(f"plan {number} does not join all sites to the root: {error}") from error
