"""A process that has done its part, when the link to the node above it is cut in that very moment."""

import numpy as np
import pytest
from geokfp.components.geo_training.errors import LinkClosedError
from geokfp.components.geo_training.links.client import Client, ClientSettings, Terms
from geokfp.components.geo_training.wire.messages import Leave
from geokfp.components.geo_training.wire.units import TREE, Unit
from support.geo_tree import RUN, at_once, topology, tree
from support.memory_transport import CUT, MemoryTransport


@pytest.mark.parametrize("times", [1, 2, 3])
@pytest.mark.parametrize("who", ["site-0/trainer-0", "site-1"])
def test_a_farewell_that_a_cut_took_is_said_again(who, times):
    """Cut are farewells, in turn those of `who` and the answers to them: both must come through."""
    shape, transport = topology(2, 1), MemoryTransport()
    transport.faults.add(CUT, lambda message: isinstance(message, Leave) and message.sender == who, times)

    def work(name):
        client = whole.client(name)
        for _ in range(2):
            rounds = client.next_round(TREE, Unit("gradient", 0, 3))
            client.wait(client.push(rounds, np.ones(3, np.float32), Terms(reduction="mean", weight=1)))
        client.close()

    with tree(shape, transport) as whole:
        at_once(work, shape.workers)
    assert not whole.errors
    assert transport.faults.outstanding == 0


def test_who_is_not_reached_any_more_is_left_without_a_word():
    shape, transport = topology(1, 1), MemoryTransport()
    transport.faults.add(CUT, lambda message: isinstance(message, Leave))
    dialled = []

    def dial():
        dialled.append(shape.site("site-0").listens)
        if len(dialled) > 1:
            raise LinkClosedError("no way")
        return transport.connect(dialled[0], 5.0)

    with tree(shape, transport) as whole:
        settings = ClientSettings(name="site-0/trainer-0", peer="site-0", run=RUN, reconnect_s=0.2)
        Client(settings, dial, whole.in_site.up()).close()
        assert len(dialled) > 1
        whole.client("site-0/trainer-0").close()
    assert not whole.errors
