"""Weights that the root holds and its optimizer moves, and what each site has of them.

A site is answered with the change since its last answer, so that a compression keeps what it lost for the
next one. What a site has is followed as the site itself adds: the next answer makes up for one's rounding.
"""

import threading
from contextlib import ExitStack
from dataclasses import dataclass, field

from ..checkpoints.state import State
from ..optimizers import Optimizer, OptimizerSpec, build
from ..optimizers.base import FloatArray
from ..wire.messages import Array
from ..wire.units import Unit
from .held import loaded_weights, missing_weights

ALL = ""
"""In the place of a site's name: all of them, which get the same answers."""


@dataclass(slots=True)
class _Tensor:
    key: str
    weights: FloatArray
    first: FloatArray
    of_sites: dict[str, FloatArray] = field(default_factory=dict)
    is_loaded: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock)

    def given(self, optimizer: Optimizer, site: str) -> FloatArray:
        """Returns what a site has."""
        if site not in self.of_sites:
            self.give(optimizer, site, self.first.copy())
        return self.of_sites[site]

    def give(self, optimizer: Optimizer, site: str, weights: FloatArray) -> None:
        """Notes what a site has: in the optimizer's own backup, where it keeps one."""
        kept = None if site == ALL else optimizer.pulled(self.key, site, weights)
        self.of_sites[site] = weights if kept is None else kept


class Served:
    """The weights of all tensors. Any thread may call it.

    Args:
        spec: the optimizer.
    """

    def __init__(self, spec: OptimizerSpec) -> None:
        self._optimizer = build(spec)
        self._tensors: dict[Unit, _Tensor] = {}

    def begin(self, tensor: Unit, weights: Array) -> Array:
        """Takes over the weights that all sites have now, float32 [n], and returns them.

        Where the state was loaded, its weights stay, and are returned the first time.

        Raises:
            ProtocolError: the loaded state has no such tensor.
        """
        loaded = loaded_weights(self._tensors, tensor)
        if loaded is not None:
            return loaded
        self._tensors[tensor] = _Tensor(tensor.place, weights.copy(), weights.copy())
        return weights

    def weights(self, tensor: Unit) -> Array:
        """Returns a copy of the weights.

        Raises:
            ProtocolError: the tensor has none.
        """
        held = self._of(tensor)
        with held.lock:
            return held.weights.copy()

    def step(self, tensor: Unit, gradient: Array | None, site: str) -> Array:
        """Lets the optimizer act.

        Args:
            tensor: whose gradient it is.
            gradient: the mean gradient, float32 [n]; None to ask for what others have changed only.
            site: whose gradient it is, and who is answered; `ALL` for that of all sites.

        Returns:
            By how much the weights differ from what the site has, float32 [n].

        Raises:
            GeoError: the tensor has no weights, or the gradient is not as they are.
        """
        held = self._of(tensor)
        with held.lock:
            has = held.given(self._optimizer, site)
            if gradient is not None:
                self._optimizer.update(held.key, held.weights, gradient, site or None)
            change: Array = held.weights - has
            has += change
            held.give(self._optimizer, site, has)
            return change

    def state(self) -> State:
        """See `Stateful`; while others step, each tensor's is that of a moment between two steps."""
        with ExitStack() as held:
            tensors = list(self._tensors.items())
            for _, tensor in tensors:
                held.enter_context(tensor.lock)
            parts = {"optimizer": State(self._optimizer.state())}
            for index, (unit, tensor) in enumerate(tensors):
                sites = list(tensor.of_sites)
                given = {str(number): tensor.of_sites[site].copy() for number, site in enumerate(sites)}
                own = {"weights": tensor.weights.copy(), "first": tensor.first.copy()}
                facts = {"unit": unit.to_list(), "sites": sites}
                parts[str(index)] = State.of({"own": State(own, facts), "given": State(given)})
            return State.of(parts)

    def load_state(self, state: State) -> None:
        """See `Stateful`."""
        self._optimizer.load_state(state.part("optimizer").arrays)
        self._tensors = {}
        index = 0
        while own := (part := state.part(str(index))).part("own").arrays:
            facts, given = part.part("own").facts, part.part("given").arrays
            unit = Unit(*facts["unit"])
            tensor = _Tensor(unit.place, own["weights"].copy(), own["first"].copy(), is_loaded=True)
            for number, site in enumerate(facts["sites"]):
                tensor.give(self._optimizer, site, given[str(number)].copy())
            self._tensors[unit] = tensor
            index += 1

    def begin_again(self) -> None:
        """Forgets what sites have: all are given the weights as they are."""
        for tensor in self._tensors.values():
            tensor.first = tensor.weights.copy()
            tensor.of_sites.clear()

    def _of(self, tensor: Unit) -> _Tensor:
        if tensor not in self._tensors:
            raise missing_weights(tensor)
        return self._tensors[tensor]
