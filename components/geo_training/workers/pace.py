"""Slices of the length in time that P3 asks for, cut alike by every worker.

All workers send probes to the root before the first weights, longer ones as long as they take next to no
time, and the slowest worker's figure is everybody's: the root takes the largest, and keeps it for whoever
asks later, also in its checkpoints, since what it keeps of a tensor it keeps by slices. Source of the slices:
P3 (Jayarajan et al., 2019), where their size is a constant.
"""

import time
from collections.abc import Callable
from functools import cache

import numpy as np

from ..compression import compression
from ..links.client import Client
from ..scheduling import P3, Slices, transmission
from ..synchronization.base import PACE
from ..tree_job import TreeJob
from ..wire.units import FLOAT_BYTES, GRADIENT, Unit
from .plane import Layout, Members, Plane

PROBE = "probe"
"""Role of values that are sent to see how long they take."""
STEP = 1024
"""Values that the length of a slice is a multiple of; no slice is shorter."""
_PROBES_BYTES = (1 << 16, 1 << 18, 1 << 20, 1 << 22)
_LONG_ENOUGH_S = 0.5


def agreed_slices(job: TreeJob, client: Client, members: Members) -> Slices:
    """Returns how this worker cuts tensors; called by all workers of the tree, before any other round.

    Args:
        job: the tree.
        client: the worker's link to its site's node.
        members: all workers of the tree.

    Raises:
        GeoError: a round was given up.
    """
    chosen = transmission(job.transmission).technique
    if not isinstance(chosen, P3):
        return job.slices
    if chosen.rate_mbit:
        bytes_per_s = chosen.rate_mbit * 1e6 / 8
    else:
        bytes_per_s = 1 / slowest_link(Plane(client, members))
    return job.slices_of(slice_values(bytes_per_s * chosen.slice_ms / 1e3, job.compression) * FLOAT_BYTES)


def slowest_link(plane: Plane, clock: Callable[[], float] = time.monotonic) -> float:
    """Returns the seconds that a byte takes to the slowest worker and back, halved; the same at all workers.

    Raises:
        GeoError: a round was given up.
    """
    seconds = 0.0
    empty = _seconds_of(plane, 1, clock)
    for num_bytes in _PROBES_BYTES:
        own = max(_seconds_of(plane, num_bytes // FLOAT_BYTES, clock) - empty, 0.0)
        seconds = _largest(plane, PROBE, own) / (2 * num_bytes)
        if seconds * 2 * num_bytes > _LONG_ENOUGH_S:
            break
    return _largest(plane, PACE, max(seconds, 1e-12))


def slice_values(wire_bytes: float, chosen: str) -> int:
    """Returns how many values a slice has, whole `STEP`s.

    Args:
        wire_bytes: about so many bytes it has on the link.
        chosen: the compression, by which a value is more or less than its four bytes. What it would treat
            otherwise for being small is not cut so small, and what suits it is not exceeded.
    """
    named = compression(chosen)
    most = named.slice_bytes // FLOAT_BYTES
    wanted = min(max(int(wire_bytes / _bytes_of_value(chosen)), named.least_values, STEP), most)
    return max(wanted // STEP * STEP, named.least_values)


@cache
def _bytes_of_value(chosen: str) -> float:
    named = compression(chosen)
    count = named.slice_bytes // FLOAT_BYTES
    sample = np.random.default_rng(0).standard_normal(count).astype(np.float32)
    return max(named.up().encode(Unit(f"{GRADIENT} sample", 0, count), sample).num_bytes / count, 1e-6)


def _seconds_of(plane: Plane, count: int, clock: Callable[[], float]) -> float:
    layout = Layout.of([(str(count), count)])
    values = np.random.default_rng(plane.index).standard_normal(count).astype(np.float32)
    began = clock()
    plane.sum(PROBE, layout, values).wait()
    return clock() - began


def _largest(plane: Plane, role: str, number: float) -> float:
    largest = plane.max(role, Layout.of([("seconds", 1)]), np.array([number])).wait()
    assert largest is not None  # our own is in it
    return float(largest[0])
