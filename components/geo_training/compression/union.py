"""All values that are not zero, exactly: the way down after sparse contributions, whose union they are.

Bytes of n values, z of them not zero: 2 * ceil(n / 4096) + the smaller of ceil(3z / 2) and ceil(n / 8) + 4z;
never more than dense. Source: Bi-Sparse of GeoMX, whose pull is this.
"""

import numpy as np

from ..wire.messages import Array, Payload
from ..wire.units import Unit
from . import sparse
from .dense import Dense


class Union:
    """FP32 values bit for bit, also what is not finite; other dtypes, and what is not sparse, dense."""

    def encode(self, unit: Unit, values: Array) -> Payload:
        """See `Compressor`."""
        dense = Dense().encode(unit, values)
        if dense.dtype != "<f4" or values.size != unit.count:
            return dense
        # By bits, for a minus zero is a value.
        indices = np.flatnonzero(np.ascontiguousarray(values).view(np.uint32))
        payload = sparse.write(unit, indices, values[indices], Dense(), dense.dtype)
        return payload if payload.num_bytes < dense.num_bytes else dense
