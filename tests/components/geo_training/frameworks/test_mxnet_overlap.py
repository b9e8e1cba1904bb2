"""A watched gluon net's blocks go on while deeper layers are still under way."""

import numpy as np
import pytest

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

WIDTH = 40
"""A layer's weight is a piece of its own, and the biases together are one."""


class Pieces:
    """A policy double: notes when a piece is sent and awaited."""

    def __init__(self, events) -> None:
        self.awaited: set[int] = set()
        self._events = events

    def step_pieces_by(self, step_piece):
        self.step_piece = step_piece

    def offer(self, index, _gradient, _samples):
        self._events.append(f"send {index}")
        self.awaited.add(index)

    def step(self, _gradient, _samples):
        self._events.append("step ends")

    def take(self, index):
        if index in self.awaited:
            self.awaited.remove(index)
            self._events.append(f"await {index}")


def watched(hybrid):
    """Returns a net of two layers, what lets it overlap, and what happens from then on."""
    import mxnet as mx
    from geokfp.components.geo_training.frameworks.mxnet_overlap import MxnetOverlap
    from geokfp.components.geo_training.frameworks.mxnet_replica import MxnetReplica

    net, events = mx.gluon.nn.HybridSequential(), []
    net.add(*(mx.gluon.nn.Dense(WIDTH, in_units=WIDTH) for _ in range(2)))
    net.initialize()
    parameters = list(net.collect_params().values())
    overlap = MxnetOverlap(
        MxnetReplica({number: [each.data()] for number, each in enumerate(parameters)}, []),
        Pieces(events),
        lambda _means: None,
    )
    if hybrid:
        net.hybridize()
    overlap.watch(net, parameters.index)
    for number, block in enumerate(net):
        block.register_forward_hook(lambda *_, number=number: events.append(f"layer {number} is done"))
    x = mx.nd.ones((1, WIDTH))
    net(x)
    events.clear()
    overlap.step(lambda _key: np.zeros(1, np.float32))
    net(x)
    return events


def test_a_layers_forward_pass_waits_for_its_own_pieces_only():
    assert watched(hybrid=False) == [
        *("send 2", "send 1", "send 0", "step ends"),
        *("await 0", "await 2", "layer 0 is done"),
        *("await 1", "layer 1 is done"),
    ]


def test_a_hybridized_net_waits_for_all_that_it_holds():
    assert watched(hybrid=True)[4:] == ["await 0", "await 1", "await 2"]


def test_a_watched_net_that_did_not_use_what_came_is_refused():
    import mxnet as mx
    from geokfp.components.geo_training.errors import UsageError
    from geokfp.components.geo_training.frameworks.mxnet_overlap import MxnetOverlap
    from geokfp.components.geo_training.frameworks.mxnet_replica import MxnetReplica

    array = mx.nd.ones((WIDTH, WIDTH))
    overlap = MxnetOverlap(MxnetReplica({"w": [array]}, []), Pieces([]), lambda _means: None)
    net = mx.gluon.nn.Dense(1, in_units=1)
    overlap.watch(net, lambda _parameter: None)
    overlap._policy.awaited.add(0)
    with pytest.raises(UsageError, match="keys w are pushed again, but no block of the watched net"):
        overlap.step(lambda _key: np.zeros(1, np.float32))
