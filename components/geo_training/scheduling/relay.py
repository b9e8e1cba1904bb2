"""Which site relays for which: plans each round's trees from measured rates. Pure: chance is an argument.

The root plans a round once for the whole model, from what transfers up to the round before have shown, and
the plan travels with that round's results. So relaying costs no question on the way of a value: nothing is
asked for a key or a hop, and every node of a round has the same plan.

A plan has two trees of a kind: `best`, the quickest of all links of which something is known; and at times
`trial`, for a small part of the model, over links of which nothing is, so that to try a slow link does not
cost the whole model's time over it. While a link was never tried there is a trial in each round; later by
chance, and at the latest `1/explore` rounds after the one before. Links that were used are measured in use.

What TSEngine asks for each key and hop (who sends next, and to whom) is thus answered a round ahead. Source:
Zhou et al., *TSEngine*, IEEE TNSM 2021.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Annotated

from ..spec import Interval, check
from ..wire.relay_messages import Trees
from .rates import Link, Rates
from .trees import Tree, joined, quickest, seconds

_WORTH = 1.1
"""How many times as quick another tree must be to take the place of the last one."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TsEngine:
    """Sites relay for each other, where that is quicker.

    Raises:
        InputError: a value that is not allowed; names the option, the value and what is.
    """

    explore: Annotated[float, Interval(low=0, high=1, with_low=False)] = 0.1
    """Chance, each round, that links of which nothing is known carry a part of the model."""
    expires: Annotated[int, Interval(low=3, high=1_000_000)] = 5
    """Rounds for which a measured rate holds; a plan knows those up to two rounds before."""

    def __post_init__(self) -> None:
        """Checks the values."""
        check(self)


@dataclass(frozen=True, slots=True)
class Planned:
    """The trees of one round.

    Attributes:
        best: the quickest by what is known.
        trial: over links of which nothing is; None in most rounds.
    """

    best: Trees
    trial: Trees | None


def links(root: str, sites: Sequence[str], relays: Iterable[str]) -> list[Link]:
    """Returns who may send to whom: root and sites to each other, and sites where one of the two relays.

    Args:
        root: the root.
        sites: all sites.
        relays: those that others may reach.
    """
    accepting = frozenset(relays)
    between = [(sender, to) for sender in sites for to in sites if sender != to and {sender, to} & accepting]
    return [*((site, root) for site in sites), *((root, site) for site in sites), *between]


class Coordinator:
    """Plans rounds; one object at the root.

    Args:
        root: the root.
        sites: all sites.
        relays: those that others may reach; they alone relay.
        explore: chance of a trial in a round in which every link was tried before.
        expires: rounds for which a measurement holds.

    Attributes:
        rates: what is known; transfers are told to it.
    """

    def __init__(
        self, root: str, sites: Sequence[str], relays: Iterable[str], *, explore: float, expires: int
    ) -> None:
        self._root = root
        self._sites = tuple(sites)
        self._relays = frozenset(relays)
        self._explore = explore
        self._most_gap = math.ceil(1 / explore)
        self._last_trial = 0
        star = dict.fromkeys(self._sites, root)
        self._best = Trees(star, star)
        self.rates = Rates(links(root, sites, self._relays), expires)

    def plan(self, number: int, pieces: int, random: Random) -> Planned:
        """Plans a round; called once for each, in their order.

        Args:
            number: of the round.
            pieces: in how many units the model travels, at least 1.
            random: where chance comes from; drawn from once a round.
        """
        chance = random.random()
        self._best = Trees(
            self._better(self._best.up, number, pieces, upwards=True),
            self._better(self._best.down, number, pieces, upwards=False),
        )
        due = chance < self._explore or number - self._last_trial >= self._most_gap
        unknown = self.rates.unknown(number)
        if not unknown or not (due or self.rates.never()):
            return Planned(self._best, None)
        self._last_trial = number
        return Planned(self._best, self._trial(unknown))

    def _better(self, before: Tree, number: int, pieces: int, *, upwards: bool) -> Tree:
        known = self.rates.known(number)
        slowest = max((1 / rate for rate in known.values() if rate > 0), default=1.0)

        def cost(site: str, parent: str) -> float:
            if not self._relays_for(parent):
                return math.inf
            link = (site, parent) if upwards else (parent, site)
            rate = known.get(link)
            if rate is None:
                # Of a way to the root there is always the last measurement, or the worst: all begins by it.
                last = self.rates.last(link) if parent == self._root else None
                rate = last.bytes_per_s if last is not None else 0.0
            if rate > 0:
                return 1 / rate
            return 2 * slowest if parent == self._root else math.inf

        found = quickest(self._sites, self._root, cost, pieces)
        now, then = seconds(before, self._root, cost, pieces), seconds(found, self._root, cost, pieces)
        return found if now > _WORTH * then else before

    def _trial(self, unknown: Sequence[Link]) -> Trees:
        """Links are tried upwards where a tree has room for them, and downwards where not."""
        upwards = [(sender, to) for sender, to in unknown if self._relays_for(to)]
        up = joined(upwards, self._best.up, self._root)
        rest = [(to, sender) for sender, to in unknown if up.get(sender) != to and self._relays_for(sender)]
        return Trees(up, joined(rest, self._best.down, self._root))

    def _relays_for(self, parent: str) -> bool:
        return parent == self._root or parent in self._relays
