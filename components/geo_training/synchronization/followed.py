"""Weights that workers move by mean changes, as the root follows them.

With a lossy way down the workers have less of the changes than the root, until the rest has come too.
"""

from dataclasses import dataclass

from ..errors import ProtocolError
from ..messages import Array
from ..state import State
from ..units import Unit


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
        held = self._tensors.get(tensor)
        if held is not None and held.is_loaded:
            held.is_loaded = False
            return held.weights.copy()
        if held is None and any(each.is_loaded for each in self._tensors.values()):
            raise ProtocolError(
                f"the checkpoint has no weights of {tensor.key}[{tensor.offset}]: it is of another model"
            )
        self._tensors[tensor] = _Tensor(weights.copy())
        return weights

    def add(self, tensor: Unit, change: Array) -> None:
        """Moves the weights of a tensor.

        Raises:
            ProtocolError: the tensor has none.
        """
        if tensor not in self._tensors:
            raise ProtocolError(f"the root has no weights of {tensor.key}[{tensor.offset}], which come first")
        self._tensors[tensor].weights += change

    def state(self) -> State:
        """See `Stateful`."""
        units = list(self._tensors)
        facts = {"units": [[unit.key, unit.offset, unit.count] for unit in units]}
        arrays = {str(index): self._tensors[unit].weights.copy() for index, unit in enumerate(units)}
        return State(arrays, facts)

    def load_state(self, state: State) -> None:
        """See `Stateful`."""
        self._tensors = {
            Unit(*named): _Tensor(state.arrays[str(index)].copy(), is_loaded=True)
            for index, named in enumerate(state.facts["units"])
        }
