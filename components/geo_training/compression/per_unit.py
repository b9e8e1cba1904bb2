"""One link's compressors: each unit has its own, chosen by role and size when it first comes."""

import threading
from collections.abc import Callable

from ..messages import Array, Payload
from ..units import DELTA, GRADIENT, Unit
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
        with self._lock:
            if unit not in self._of_units:
                compressor = self._choose(unit) if may_lose(unit) else self._exact()
                self._of_units[unit] = (threading.Lock(), compressor)
            lock, compressor = self._of_units[unit]
        with lock:
            return compressor.encode(unit, values)
