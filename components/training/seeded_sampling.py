"""Makes DGL's distributed sampling a function of seed, nodes and order of calls, whoever holds the nodes.

DGL draws a node's neighbours from the generator of the process that holds them. A server's generator is then
at a place that depends on which trainer asked first, and no two runs are alike. Here each request brings its
seed along. With sampler processes runs still differ, as these hand over their batches in any order.

Written against DGL 1.1.3, as `one_host` is.
"""

import zlib
from typing import Any

import dgl
from dgl.distributed import graph_services, rpc


class _Draws:
    """Where this process stands in its sequence of draws."""

    seed = 0
    count = 0

    @classmethod
    def next(cls) -> tuple[int, int]:
        cls.count += 1
        return cls.seed, cls.count


class SeededSamplingRequest(graph_services.SamplingRequest):  # type: ignore[misc]
    """DGL's request for neighbours, with the draw that they are sampled by."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.draw = _Draws.next()

    def __getstate__(self) -> tuple[Any, ...]:
        return (*super().__getstate__(), self.draw)

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        *own, self.draw = state
        super().__setstate__(tuple(own))

    def process_request(self, server_state: Any) -> Any:
        """Samples on the server that holds the nodes."""
        _seed(self.draw, self.seed_nodes)
        return super().process_request(server_state)


def _seed(draw: tuple[int, int], nodes: Any) -> None:
    dgl.seed(zlib.crc32(nodes.numpy().tobytes(), zlib.crc32(repr(draw).encode("ascii"))) & 0x7FFFFFFF)


def serve() -> None:
    """Lets this process, a server, answer `SeededSamplingRequest`; before `dgl.distributed.initialize`."""
    rpc.register_service(
        graph_services.SAMPLING_SERVICE_ID, SeededSamplingRequest, graph_services.SubgraphResponse
    )


def join() -> None:
    """Lets this process, a trainer, and its samplers ask so; before `dgl.distributed.initialize`."""
    serve()
    graph_services.SamplingRequest = SeededSamplingRequest
    sample = graph_services._sample_neighbors

    def sample_own(graph: Any, book: Any, nodes: Any, *rest: Any) -> Any:
        _seed(_Draws.next(), nodes)
        return sample(graph, book, nodes, *rest)

    graph_services._sample_neighbors = sample_own


def begin_draws(seed: int) -> None:
    """Begins this process's sequence of draws anew."""
    _Draws.seed, _Draws.count = seed, 0
