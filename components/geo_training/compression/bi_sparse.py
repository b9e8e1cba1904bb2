"""Bi-Sparse towards the root: sparsification with momentum correction; the way down is `Union`, or lossy.

For a gradient g of n values, velocity u and what was not sent v, both zero at first::

    u <- momentum * u + g
    v <- v + u
    send the z = max(1, floor(ratio * n)) largest |v|, never more; for these v <- v - sent, u <- 0

Bytes of n values, z sent: 2 * ceil(n / 4096) + the smaller of ceil(3z / 2) and ceil(n / 8) + those of z
values by their codec (`sparse`). Source: Bi-Sparse of GeoMX; momentum correction, masking and the sampled
threshold are those of Lin et al., *Deep Gradient Compression*, ICLR 2018.
"""

from math import ceil, floor

import numpy as np

from ..checkpoints.state import State
from ..wire.messages import Array, Payload
from ..wire.units import Unit
from . import sparse
from .base import Compressor
from .decoding import decode_values
from .floats import as_float32, magnitude_bits, wire_dtype
from .selection import largest

_SAMPLED_SHARE = 0.005
_SAMPLED_AT_LEAST = 10
"""So many of the sample are above the threshold."""


class LargestOfAll:
    """The largest magnitudes of a whole unit, whatever came before; see `sparse` for the buffers.

    Args:
        ratio: share of the values that is sent.
        values: encodes those that are sent.
        is_sampled: whether the threshold is estimated of a sample; otherwise it is exact. Either way no more
            are sent than `ratio` says; by a sample fewer may be.
        seed: of the samples.
    """

    def __init__(self, ratio: float, values: Compressor, *, is_sampled: bool = False, seed: int = 0) -> None:
        self._ratio = ratio
        self._values = values
        self._is_sampled = is_sampled
        self._generator = np.random.default_rng(seed)

    def encode(self, unit: Unit, values: Array) -> Payload:
        """See `Compressor`."""
        floats = as_float32(unit, values)
        indices = self.select(unit, floats)
        dtype = wire_dtype(values)
        return sparse.write(unit, indices, floats[indices], self._values, dtype)

    def select(self, unit: Unit, floats: Array) -> Array:
        """Returns the indices that are sent of contiguous FP32 values.

        Raises:
            NotFiniteError: a value is not finite, or too large.
        """
        kept = max(1, floor(self._ratio * floats.size))
        return largest(unit, floats, kept, self._threshold(floats))

    def state(self) -> State:
        """See `Stateful`: where the samples have come to."""
        return State(facts={"generator": self._generator.bit_generator.state} if self._is_sampled else {})

    def load_state(self, state: State) -> None:
        """See `Stateful`."""
        if self._is_sampled:
            self._generator.bit_generator.state = state.facts["generator"]

    def _threshold(self, floats: Array) -> float:
        """Returns the estimated magnitude from which values are sent, 0 for an exact choice."""
        size = ceil(max(_SAMPLED_SHARE * floats.size, _SAMPLED_AT_LEAST / self._ratio))
        if not self._is_sampled or size >= floats.size:
            return 0.0
        sample = magnitude_bits(floats[self._generator.integers(floats.size, size=size)])
        cut = size - floor(size * self._ratio)
        return float(np.partition(sample, cut)[cut : cut + 1].view(np.float32)[0])


class BiSparse:
    """What was not sent stays here, with the momentum behind it: its own error feedback.

    Args:
        select: which are sent.
        values: encodes those that are sent; what it loses stays too.
        momentum: of the correction; 0 for none.
    """

    def __init__(self, select: LargestOfAll, values: Compressor, momentum: float) -> None:
        self._select = select
        self._values = values
        self._momentum = np.float32(momentum)
        self._velocity: Array | None = None
        self._unsent: Array | None = None

    @property
    def unsent(self) -> Array | None:
        """What was given and not yet sent, with its momentum, FP32; None before the first values."""
        return self._unsent

    def encode(self, unit: Unit, values: Array) -> Payload:
        """See `Compressor`."""
        floats = as_float32(unit, values)
        if self._velocity is None or self._unsent is None:
            self._velocity, self._unsent = np.zeros_like(floats), np.zeros_like(floats)
        velocity, unsent = self._velocity, self._unsent
        with np.errstate(over="ignore", invalid="ignore"):  # refused where it is selected
            velocity *= self._momentum
            velocity += floats
            unsent += velocity
        indices = self._select.select(unit, unsent)
        chosen = unsent[indices]
        dtype = wire_dtype(values)
        payload = sparse.write(unit, indices, chosen, self._values, dtype)
        unsent[indices] = chosen - sparse.sent_values(unit, payload, indices.size, decode_values)
        velocity[indices] = 0
        return payload

    def take_back(self, values: Array) -> None:
        """Keeps values that were sent and did not arrive, for the next; they gain no momentum again."""
        assert self._unsent is not None  # they were encoded here
        self._unsent += values

    def state(self) -> State:
        """See `Stateful`."""
        kept = {"velocity": self._velocity, "unsent": self._unsent}
        own = State({name: array.copy() for name, array in kept.items() if array is not None})
        return State.of({"own": own, "select": self._select.state()})

    def load_state(self, state: State) -> None:
        """See `Stateful`."""
        own = {name: array.copy() for name, array in state.part("own").arrays.items()}
        self._velocity, self._unsent = own.get("velocity"), own.get("unsent")
        self._select.load_state(state.part("select"))
