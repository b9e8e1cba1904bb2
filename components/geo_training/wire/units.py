"""What one round is about: a contiguous piece of one key, a scope and a number.

A whole model, one tensor, a slice of a tensor, a histogram or a list of neighbours are all units. Knows
nothing of networks or of values.
"""

from dataclasses import dataclass

TREE = "tree"
"""Scope of a round that joins the workers of all sites and ends at the root."""

SITE = "site"
"""Scope of a round that joins the workers of one site and ends at the site's aggregator."""

OWN = "own "
"""Begins the scope of a round that joins the workers of one site and ends at the root; the site follows."""

_OF_SHARD = "/"
"""Parts a scope that ends at a root from the number of that root, where it is not the first."""

GRADIENT = "gradient"
"""Role of a gradient; a compression may lose some of it."""

PLAN = "plan"
"""Role of what workers have measured; the answer says how all go on."""

DELTA = "delta"
"""Role of a change of weights; a compression may lose some of it."""

WEIGHTS = "weights"
"""Role of the first weights, which the first worker gives to all, and to the root's optimizer."""

ENTERING = "entering"
"""Role of a question for what workers were first given, or have now; its own role follows in the key."""

CHANGES = frozenset((GRADIENT, DELTA))
"""Roles of what moves weights, round by round."""


FLOAT_BYTES = 4
"""Bytes by which keys are cut, whatever the dtype, so that who brings no values cuts alike."""


@dataclass(frozen=True, slots=True, order=True)
class Unit:
    """`count` values of `key`, from `offset`; the first word of the key is their role."""

    key: str
    offset: int
    count: int

    @property
    def role(self) -> str:
        """What the values are, such as `gradient`."""
        return self.key.partition(" ")[0]

    @property
    def place(self) -> str:
        """Where the values lie, such as `gradient dense0[4096]`."""
        return f"{self.key}[{self.offset}]"

    def to_list(self) -> list[str | int]:
        """Returns the form in which `Unit(*...)` takes it, for JSON."""
        return [self.key, self.offset, self.count]


@dataclass(frozen=True, slots=True, order=True)
class RoundId:
    """The `number`-th round (from 0) of a unit in a scope; the same on every node that takes part."""

    scope: str
    unit: Unit
    number: int

    def __str__(self) -> str:
        unit = self.unit
        return f"round {self.number} of {unit.key}[{unit.offset}:{unit.offset + unit.count}] ({self.scope})"


def at_shard(scope: str, shard: int) -> str:
    """Returns the scope of the same rounds that end at the `shard`-th root, from 0."""
    return f"{scope}{_OF_SHARD}{shard}" if shard else scope


def shard_of(scope: str) -> int:
    """Returns the number of the root that a scope's rounds end at, 0 where it names none."""
    _, _, number = scope.partition(_OF_SHARD)
    return int(number) if number.isdecimal() else 0


def whole_scope(scope: str) -> str:
    """Returns the scope without the number of a root."""
    return scope.partition(_OF_SHARD)[0]
