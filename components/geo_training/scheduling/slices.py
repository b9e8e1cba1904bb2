"""Cutting a key into units. Knows nothing of networks."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from ..wire.units import Unit

SHORTEST_BYTES = 4096
"""What a slice is not cut shorter than: a frame adds up to 220 bytes, and a round takes its time."""


class Slices(Protocol):
    """Cuts a key; every node must cut it alike, for a unit is what a round is about."""

    def cut(self, key: str, count: int, itemsize: int) -> Sequence[Unit]:
        """Returns the units of a key, first to be sent first; called by a worker once a round.

        Args:
            key: the key.
            count: number of its values.
            itemsize: bytes of a value.
        """

    def priority(self, place: int | None) -> int:
        """Returns how urgent a tensor is on every link; 0 is the most.

        Args:
            place: of the tensor in the order of the forward pass, from 0; None for small ones together.
        """

    def finer(self, most_bytes: int) -> "Slices":
        """Returns slices of at most so many bytes, but not such that a compression would treat otherwise."""


@dataclass(frozen=True, slots=True)
class InOrder:
    """Slices of at most `slice_bytes`, in the order of the values; a smaller key is one unit.

    `finer` ones have at least `least_bytes`, and never so few that their frames would be most of them.
    """

    slice_bytes: int = 4 << 20
    least_bytes: int = 0

    def cut(self, key: str, count: int, itemsize: int) -> Sequence[Unit]:
        """See `Slices`."""
        step = max(1, self.slice_bytes // itemsize)
        return [Unit(key, start, min(step, count - start)) for start in range(0, max(count, 1), step)]

    def priority(self, place: int | None) -> int:  # noqa: ARG002
        """See `Slices`; all alike."""
        return 0

    def finer(self, most_bytes: int) -> "InOrder":
        """See `Slices`."""
        most = max(most_bytes // SHORTEST_BYTES * SHORTEST_BYTES, SHORTEST_BYTES, self.least_bytes)
        return replace(self, slice_bytes=min(self.slice_bytes, most))


@dataclass(frozen=True, slots=True)
class ByLayer(InOrder):
    """The same slices, those of the first layers first, and before them the small tensors of all layers."""

    def priority(self, place: int | None) -> int:
        """See `Slices`."""
        return 0 if place is None else place + 1
