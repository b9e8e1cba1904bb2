"""Slices as long as a link asks for, the same at every worker, and not where a compression would suffer."""

import numpy as np
import pytest
from geokfp.components.geo_training.compression import compression
from geokfp.components.geo_training.nodes.reductions import REDUCTIONS
from geokfp.components.geo_training.synchronization.node import Root
from geokfp.components.geo_training.topology import read
from geokfp.components.geo_training.tree_job import TreeJob
from geokfp.components.geo_training.wire.units import TREE, RoundId, Unit
from geokfp.components.geo_training.workers.pace import STEP, agreed_slices, slice_values, slowest_link
from geokfp.components.geo_training.workers.plane import Members, Plane
from hypothesis import given, settings
from hypothesis import strategies as st
from support.geo_tree import at_once, topology, tree
from support.memory_transport import MemoryTransport

WORKERS = {"site-0": 1, "site-1": 1}


class Ticking:
    """A clock on which each look takes some time."""

    def __init__(self, seconds: float) -> None:
        self.now, self._seconds = 0.0, seconds

    def __call__(self) -> float:
        self.now += self._seconds * (1 + self.now)
        return self.now


@settings(deadline=None)
@given(st.floats(1, 1e9), st.sampled_from(["none", "fp16", "quantized(bits=4)", "top_k", "mpq(bound=10000)"]))
def test_a_slice_is_within_what_suits_the_compression(wire_bytes, chosen):
    values = slice_values(wire_bytes, chosen)
    named = compression(chosen)
    assert min(STEP, named.slice_bytes // 4) <= values <= named.slice_bytes // 4
    assert values >= named.least_values


@pytest.mark.parametrize(("mbit", "values"), [(5, 7168), (10, 15360), (20, 30720), (1000, 32768)])
def test_fifty_milliseconds_of_a_rate_are_so_many_values(mbit, values):
    job = TreeJob(
        run_id="a",
        workers=WORKERS,
        topology=read({}, WORKERS, (1, 2, 3)),
        transmission=f"p3(rate_mbit={mbit})",
    )
    slices = agreed_slices(job, None, None)  # a given rate needs no round
    assert slices.cut("gradient w", 100_000, 4)[0].count == values
    assert slices.priority(3) > slices.priority(0) > slices.priority(None)


def test_a_compression_that_sends_less_has_longer_slices():
    of = {text: slice_values(31_250, text) for text in ("none", "fp16", "quantized(bits=4)")}
    assert of["none"] < of["fp16"] < of["quantized(bits=4)"]


def test_all_workers_have_the_slowest_ones_figure_and_later_ones_too():
    shape, transport = topology(2, 1), MemoryTransport()
    first: dict[str, float] = {}

    def work(name):
        plane = Plane(whole.client(name), Members(workers=shape.workers, name=name))
        seconds = 0.01 if name == shape.workers[0] else 0.05
        first[name] = slowest_link(plane, Ticking(seconds))
        again = slowest_link(plane, Ticking(seconds / 10))
        plane.close()
        return again

    with tree(shape, transport) as whole:
        again = at_once(work, shape.workers)
    assert len({*first.values(), *again.values()}) == 1


def test_the_root_keeps_what_was_agreed_in_its_checkpoints():
    def pace_of(root, number):
        round_id = RoundId(TREE, Unit("pace seconds", 0, 1), 0)
        return float(root.settle(round_id, REDUCTIONS["max"], np.array([number]), 0.0)[0])

    root, later = Root(), Root()
    assert pace_of(root, 0.25) == 0.25
    later.load_state(root.state())
    assert pace_of(later, 0.5) == 0.25
