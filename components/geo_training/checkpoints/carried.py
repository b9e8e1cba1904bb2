"""What a node's contributions carry, and the form in a checkpoint of those that came too late for a round."""

from dataclasses import dataclass
from typing import Any

from ..nodes.rounds import Contribution, Rounds
from ..nodes.shelf import Shelved
from ..wire.messages import Array
from ..wire.units import Unit
from .state import State


@dataclass(frozen=True, slots=True)
class Value:
    """What a contribution brings.

    Attributes:
        reduction: name of the rule that merges.
        held: its values, in memory or put by; None when it brings none.
        priority: how urgent its round is.
    """

    reduction: str
    held: Array | Shelved | None
    priority: int = 0

    @property
    def values(self) -> Array | None:
        """The values, wherever they are: where they are put by, a copy of them is made."""
        return self.held.read() if isinstance(self.held, Shelved) else self.held


def carried_state(rounds: Rounds) -> State:
    """Returns the contributions that count in a next round, as a state."""
    arrays: dict[str, Array] = {}
    entries: list[dict[str, Any]] = []
    for (scope, unit), contributions in rounds.carried().items():
        for each in contributions:
            if (values := each.value.values) is not None:
                arrays[str(len(entries))] = values.copy()
            entries.append(
                {
                    "scope": scope,
                    "unit": unit.to_list(),
                    "sender": each.sender,
                    "covers": sorted(each.covers),
                    "weight": each.weight,
                    "wait_s": each.wait_s,
                    "reduction": each.value.reduction,
                    "priority": each.value.priority,
                }
            )
    return State(arrays, {"carried": entries} if entries else {})


def load_carried(rounds: Rounds, state: State) -> None:
    """Lets what `carried_state` gave count in the next rounds of a node that has had none."""
    for index, entry in enumerate(state.facts.get("carried", [])):
        values = state.arrays.get(str(index))
        contribution = Contribution(
            entry["sender"],
            frozenset(entry["covers"]),
            entry["weight"],
            entry["wait_s"],
            Value(entry["reduction"], values, entry["priority"]),
            idle=values is None,
        )
        rounds.carry(entry["scope"], Unit(*entry["unit"]), contribution)
