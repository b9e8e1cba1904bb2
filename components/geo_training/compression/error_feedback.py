"""Error feedback: what a lossy codec loses is added to the next values of the unit.

Wraps any lossy codec. For values g and residual e, zero at first: c <- decay * e + g; send q = codec(c);
e <- c - q. With decay 1 the values sent and the last residual sum to the values given.

Source: Seide et al., *1-Bit Stochastic Gradient Descent and its Application to Data-Parallel Distributed
Training of Speech DNNs*, Interspeech 2014; Karimireddy et al., *Error Feedback Fixes SignSGD and other
Gradient Compression Schemes*, ICML 2019. Decay: SparseLoCo has 0.95.
"""

import numpy as np

from ..checkpoints.state import State, load_into, state_of
from ..wire.messages import Array, Payload
from ..wire.units import Unit
from .base import Compressor
from .decoding import decode_values
from .floats import as_float32, wire_dtype


class ErrorFeedback:
    """A compressor of one unit.

    Args:
        codec: without a memory of values, lossy; its payload shares no memory with the values.
        decay: share of the residual that is kept, above 0, at most 1.
    """

    def __init__(self, codec: Compressor, decay: float = 1.0) -> None:
        self._codec = codec
        self._decay = np.float32(decay)
        self._residual: Array | None = None

    @property
    def residual(self) -> Array | None:
        """What was lost and not yet sent, FP32; None before the first values."""
        return self._residual

    def encode(self, unit: Unit, values: Array) -> Payload:
        """See `Compressor`."""
        floats = as_float32(unit, values)
        residual = np.zeros_like(floats) if self._residual is None else self._residual
        with np.errstate(over="ignore", invalid="ignore"):  # refused by the codec
            residual *= self._decay
            residual += floats
        payload = self._codec.encode(unit, residual)
        residual -= decode_values(unit, payload)
        self._residual = residual
        return Payload(payload.codec, wire_dtype(values), payload.buffers)

    def state(self) -> State:
        """See `Stateful`."""
        own = {} if self._residual is None else {"residual": self._residual.copy()}
        return State.of({"own": State(own), "codec": state_of(self._codec)})

    def load_state(self, state: State) -> None:
        """See `Stateful`."""
        residual = state.part("own").arrays.get("residual")
        self._residual = None if residual is None else residual.copy()
        load_into(self._codec, state.part("codec"))
