"""One link's compressors: each unit has its own, chosen by role and size when it first comes."""

import threading
from collections.abc import Callable

from ..checkpoints.state import State, load_into, state_of
from ..wire.messages import Array, Payload
from ..wire.units import DELTA, GRADIENT, Unit
from .base import Compressor
from .dense import Dense

LOSSY_ROLES = frozenset((GRADIENT, DELTA))
"""Only these may lose something; weights, counts and all other roles stay as they are."""


def may_lose(unit: Unit) -> bool:
    """Tells whether a unit's role allows a lossy codec."""
    return unit.role in LOSSY_ROLES


class PerUnit:
    """A compressor for one link or node, in one direction; any thread may call it.

    Args:
        choose: gives the compressor of a unit whose role is lossy.
        exact: gives that of the others.
    """

    def __init__(self, choose: Callable[[Unit], Compressor], exact: Callable[[], Compressor] = Dense) -> None:
        self._choose = choose
        self._exact = exact
        self._lock = threading.Lock()
        self._of_units: dict[Unit, tuple[threading.Lock, Compressor]] = {}

    def encode(self, unit: Unit, values: Array) -> Payload:
        """See `Compressor`."""
        lock, compressor = self._of(unit)
        with lock:
            return compressor.encode(unit, values)

    def of(self, unit: Unit) -> Compressor:
        """Returns a unit's own compressor."""
        return self._of(unit)[1]

    def state(self) -> State:
        """See `Stateful`: that of each unit that has any."""
        states = {unit: state_of(compressor) for unit, (_, compressor) in self._of_units.items()}
        kept = {unit: state for unit, state in states.items() if state.arrays or state.facts}
        parts = {str(index): state for index, state in enumerate(kept.values())}
        units = State(facts={"units": [unit.to_list() for unit in kept]})
        return State.of({"own": units, **parts})

    def load_state(self, state: State) -> None:
        """See `Stateful`."""
        self._of_units.clear()
        for index, named in enumerate(state.part("own").facts.get("units", [])):
            load_into(self._of(Unit(*named))[1], state.part(str(index)))

    def _of(self, unit: Unit) -> tuple[threading.Lock, Compressor]:
        with self._lock:
            if unit not in self._of_units:
                compressor = self._choose(unit) if may_lose(unit) else self._exact()
                self._of_units[unit] = (threading.Lock(), compressor)
            return self._of_units[unit]
