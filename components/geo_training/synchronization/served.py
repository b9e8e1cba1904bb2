"""Weights that the root holds and its optimizer moves, and what each site has of them.

A site is answered with the change since its last answer, so that a compression keeps what it lost for the
next one. What a site has is followed as the site itself adds: the next answer makes up for one's rounding.
"""

import threading
from dataclasses import dataclass, field

from ..errors import ProtocolError
from ..messages import Array
from ..optimizers import Optimizer, OptimizerSpec, build
from ..optimizers.base import FloatArray
from ..units import Unit

ALL = ""
"""In the place of a site's name: all of them, which get the same answers."""


@dataclass(slots=True)
class _Tensor:
    key: str
    weights: FloatArray
    first: FloatArray
    of_sites: dict[str, FloatArray] = field(default_factory=dict)
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

    def begin(self, tensor: Unit, weights: Array) -> None:
        """Takes over the weights that all sites have now, float32 [n]."""
        self._tensors[tensor] = _Tensor(f"{tensor.key}[{tensor.offset}]", weights.copy(), weights.copy())

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

    def _of(self, tensor: Unit) -> _Tensor:
        if tensor not in self._tensors:
            raise ProtocolError(f"the root has no weights of {tensor.key}[{tensor.offset}], which come first")
        return self._tensors[tensor]
