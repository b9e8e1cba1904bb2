"""What a node does with its children's connections when it cannot go on itself."""

import queue
from types import SimpleNamespace

import numpy as np
import pytest
from geokfp.components.geo_training.compression import compression
from geokfp.components.geo_training.errors import KeepingError
from geokfp.components.geo_training.links.children import Children, Door
from geokfp.components.geo_training.links.client import Client, ClientSettings, Terms
from geokfp.components.geo_training.transport.base import Address
from geokfp.components.geo_training.wire.messages import Join
from geokfp.components.geo_training.wire.units import TREE, Unit
from support.memory_transport import MemoryTransport

FULL = KeepingError("kept: the journal cannot be written: No space left on device")


@pytest.mark.parametrize("where", ["admit", "take"])
def test_a_node_that_cannot_keep_what_it_takes_gives_all_up_with_the_reason(where):
    failures: queue.Queue[KeepingError] = queue.Queue()

    def fails(*_):
        raise FULL

    parent = SimpleNamespace(take=lambda *_: True, left=lambda _: None, failed=failures.put)
    register = SimpleNamespace(
        admit=lambda _: None, lost=lambda *_, was_silent: None, wait_for_room=lambda *_: None
    )
    setattr(parent if where == "take" else register, where, fails)
    transport, address = MemoryTransport(), Address("127.0.0.1", 1)
    door = Door(name="root", run="run", children=frozenset(["site-0"]))
    children = Children(door, transport.listen(address), parent, register)
    children.begin()
    if where == "admit":
        connection = transport.connect(address, 5.0)
        connection.send(Join("site-0", "run"))
    else:
        settings = ClientSettings(name="site-0", peer="root", run="run", reconnect_s=0.1)
        client = Client(settings, lambda: transport.connect(address, 5.0), compression("none").up())
        round_id = client.next_round(TREE, Unit("gradient", 0, 3))
        client.push(round_id, np.ones(3, np.float32), Terms(reduction="sum"))
    assert failures.get(timeout=20.0) is FULL
    children.end()
