"""What the peers below a node have of the weights: the first ones, and every change that they were answered.

Each change is added as a worker adds it, so that these are its weights bit for bit, also where a compression
lost something on the way. Who comes anew is given them. Knows nothing of networks.
"""

from dataclasses import dataclass, replace

from ..checkpoints.state import State
from ..wire.messages import Array
from ..wire.units import OWN, TREE, RoundId, Unit


@dataclass(frozen=True, slots=True)
class Weights:
    """Of one tensor.

    Attributes:
        values: one-dimensional.
        rounds: how many rounds of changes are behind them.
    """

    values: Array
    rounds: int = 0


class Given:
    """The weights of all tensors that the workers of a scope have. One thread at a time calls it."""

    def __init__(self) -> None:
        self._held: dict[str, dict[Unit, Weights]] = {}

    def has(self, scope: str) -> bool:
        """Tells whether the workers of a scope have weights of their own."""
        return scope in self._held

    def begin(self, tensor: Unit, values: Array, rounds: int = 0, scope: str = TREE) -> None:
        """Takes over weights that all workers of a scope have now.

        Args:
            tensor: whose they are.
            values: one-dimensional.
            rounds: how many rounds of changes are behind them.
            scope: of these rounds.
        """
        for of_scope, held in self._held.items():
            if scope == TREE and of_scope.startswith(OWN):
                held.pop(tensor, None)
        self._held.setdefault(scope, {})[tensor] = Weights(values.copy(), rounds)

    def add(self, round_id: RoundId, change: Array | None) -> None:
        """Adds the result of a round, unless it is in the weights already; None changes nothing."""
        held = self._held.setdefault(round_id.scope, {})
        tensor = tensor_of(round_id.unit)
        before = held.get(tensor) or self._held.get(TREE, {}).get(tensor)
        if before is None or round_id.number < before.rounds:
            return
        values = before.values if change is None else before.values + change
        held[tensor] = Weights(values, round_id.number + 1)

    def weights(self, scope: str, tensor: Unit) -> Weights | None:
        """Returns the weights that the workers of a scope have; None where they are not known."""
        return self._held.get(scope, {}).get(tensor) or self._held.get(TREE, {}).get(tensor)

    def state(self) -> State:
        """See `Stateful`."""
        entries = [(scope, unit, one) for scope, held in self._held.items() for unit, one in held.items()]
        facts = [[scope, unit.to_list(), one.rounds] for scope, unit, one in entries]
        arrays = {str(index): one.values.copy() for index, (_, _, one) in enumerate(entries)}
        return State(arrays, {"tensors": facts})

    def load_state(self, state: State) -> None:
        """See `Stateful`."""
        self._held = {}
        for index, (scope, unit, rounds) in enumerate(state.facts.get("tensors", [])):
            self.begin(Unit(*unit), state.arrays[str(index)], rounds, scope)


def changes_scope(scope: str) -> bool:
    """Tells whether rounds of a scope change weights that the root holds too."""
    return scope == TREE or scope.startswith(OWN)


def tensor_of(unit: Unit) -> Unit:
    """Returns the tensor that a unit of any role is about."""
    return replace(unit, key=unit.key.partition(" ")[2])
