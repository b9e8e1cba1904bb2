"""Weights that workers move by mean changes, as the root follows them.

With a lossy way down the workers have less of the changes than the root, until the rest has come too.
"""

from dataclasses import dataclass

from ..checkpoints.state import State
from ..wire.messages import Array
from ..wire.units import Unit
from .held import loaded_weights, missing_weights


@dataclass(slots=True)
class _Tensor:
    weights: Array
    is_loaded: bool = False


class Followed:
    """The weights of all tensors. Any thread may call it; calls for one tensor follow each other."""

    def __init__(self) -> None:
        self._tensors: dict[Unit, _Tensor] = {}

    def begin(self, tensor: Unit, weights: Array) -> Array:
        """Takes over the weights that all workers have now, float32 [n], and returns them.

        Where the state was loaded, its weights stay, and are returned the first time.

        Raises:
            ProtocolError: the loaded state has no such tensor.
        """
        loaded = loaded_weights(self._tensors, tensor)
        if loaded is not None:
            return loaded
        self._tensors[tensor] = _Tensor(weights.copy())
        return weights

    def add(self, tensor: Unit, change: Array) -> None:
        """Moves the weights of a tensor.

        Raises:
            ProtocolError: the tensor has none.
        """
        if tensor not in self._tensors:
            raise missing_weights(tensor)
        self._tensors[tensor].weights += change

    def state(self) -> State:
        """See `Stateful`."""
        units = list(self._tensors)
        facts = {"units": [unit.to_list() for unit in units]}
        arrays = {str(index): self._tensors[unit].weights.copy() for index, unit in enumerate(units)}
        return State(arrays, facts)

    def load_state(self, state: State) -> None:
        """See `Stateful`."""
        self._tensors = {
            Unit(*named): _Tensor(state.arrays[str(index)].copy(), is_loaded=True)
            for index, named in enumerate(state.facts["units"])
        }
