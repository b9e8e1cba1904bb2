"""The messages by which sites relay for each other; see `messages`."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .heads import fields_of, listed, natural, number, round_from_head, round_to_head, text
from .units import RoundId, Unit

MOST_SITES = 1 << 12
MOST_UNITS = 1 << 10


@dataclass(frozen=True, slots=True)
class Trees:
    """How contributions come to the root, and results to the sites.

    Attributes:
        up: whom each site hands its contributions to.
        down: from whom each site gets the results.
    """

    up: Mapping[str, str]
    down: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Plan:
    """Who relays for whom in a round; comes before the results of the round before it.

    Attributes:
        number: of the rounds, one of each unit, that it is for.
        best: the trees of all units but some.
        units: the units that go by `trial`.
        trial: their trees.
    """

    number: int
    best: Trees
    units: tuple[Unit, ...]
    trial: Trees


@dataclass(frozen=True, slots=True)
class Receipt:
    """Tells the sender that all of a contribution, or of a result, has come.

    Attributes:
        round: the round.
    """

    round: RoundId


@dataclass(frozen=True, slots=True)
class Measured:
    """Tells the root what the sender's transfers took.

    Attributes:
        number: of the rounds that they were of.
        links: to whom, bytes, and seconds; no bytes over a link that could not be used. None at all asks for
            the newest plan again, which may have been lost with a connection.
    """

    number: int
    links: tuple[tuple[str, int, float], ...]


@dataclass(frozen=True, slots=True)
class Without:
    """Tells a relay not to wait for workers, whose contribution came to the root another way.

    From a site it tells the root that the plan's way of the result does not reach it.

    Attributes:
        round: the round.
        covers: the workers; none from a site.
    """

    round: RoundId
    covers: tuple[str, ...]


def plan_to_head(plan: Plan) -> list[Any]:
    """Returns the head of `Plan`."""
    units = [unit.to_list() for unit in plan.units]
    return [plan.number, _trees_to_head(plan.best), units, _trees_to_head(plan.trial)]


def plan_from_head(head: list[Any]) -> Plan:
    """Reads the head of `Plan`."""
    of_round, best, units, trial = fields_of(head, 4)
    if len(listed(units)) > MOST_UNITS:
        raise ValueError(f"{len(units)} units, at most {MOST_UNITS} are tried at once")
    return Plan(natural(of_round), _trees(best), tuple(_unit(unit) for unit in units), _trees(trial))


def receipt_to_head(receipt: Receipt) -> list[Any]:
    """Returns the head of `Receipt`."""
    return [round_to_head(receipt.round)]


def receipt_from_head(head: list[Any]) -> Receipt:
    """Reads the head of `Receipt`."""
    return Receipt(round_from_head(fields_of(head, 1)[0]))


def measured_to_head(measured: Measured) -> list[Any]:
    """Returns the head of `Measured`."""
    return [measured.number, [[to, num_bytes, float(s)] for to, num_bytes, s in measured.links]]


def measured_from_head(head: list[Any]) -> Measured:
    """Reads the head of `Measured`."""
    of_round, links = fields_of(head, 2)
    read = [fields_of(link, 3) for link in listed(links)]
    return Measured(
        natural(of_round), tuple((text(to), natural(num_bytes), number(s)) for to, num_bytes, s in read)
    )


def without_to_head(without: Without) -> list[Any]:
    """Returns the head of `Without`."""
    return [round_to_head(without.round), list(without.covers)]


def without_from_head(head: list[Any]) -> Without:
    """Reads the head of `Without`."""
    round_id, covers = fields_of(head, 2)
    return Without(round_from_head(round_id), tuple(text(name) for name in listed(covers)))


def _unit(value: Any) -> Unit:
    key, offset, count = fields_of(value, 3)
    return Unit(text(key), natural(offset), natural(count))


def _trees_to_head(trees: Trees) -> list[Any]:
    return [[list(pair) for pair in sorted(tree.items())] for tree in (trees.up, trees.down)]


def _trees(value: Any) -> Trees:
    up, down = fields_of(value, 2)
    return Trees(_tree(up), _tree(down))


def _tree(value: Any) -> Mapping[str, str]:
    if len(listed(value)) > MOST_SITES:
        raise ValueError(f"a tree of {len(value)} sites, at most {MOST_SITES} are allowed")
    return {text(site): text(parent) for site, parent in (fields_of(pair, 2) for pair in value)}
