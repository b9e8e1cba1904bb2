"""How many bytes a value needs by a compression: found by encoding some."""

import numpy as np

from ..wire.units import DELTA, Unit
from . import Compression

NUM_TRIED = 1 << 16
"""Values that are encoded: a few milliseconds, and as many as fill many chunks."""


def bytes_a_value(compression: Compression) -> float:
    """Returns the bytes that a value of a change needs, on its way up.

    Args:
        compression: its own compressors keep their state.
    """
    values = np.random.default_rng(0).standard_normal(NUM_TRIED).astype(np.float32)
    return compression.up().encode(Unit(DELTA, 0, NUM_TRIED), values).num_bytes / NUM_TRIED
