"""A trainer's view of its site: batches of its own part's nodes, with neighbours and features from all parts.

Knows nothing of models and optimisers.
"""

import atexit
import threading
import time
from collections.abc import Iterator
from typing import Any

import dgl
import dgl.distributed
import torch
from dgl.dataloading import NeighborSampler
from dgl.distributed import dist_context
from torch import Tensor

from .._launch import describe, fail
from . import one_host, seeded_sampling
from .config import TrainingConfig
from .feature_store import FeatureStore
from .loop import Batch
from .message_passing import IN_DEGREE
from .seeded_sampling import begin_draws
from .seeds import draw_seed
from .site import SitePlace
from .sparse_rows import SparseRows

FEATURES = "features"
LABELS = "labels"
MASKS = {"train": "train_mask", "validation": "validation_mask", "test": "test_mask"}
SERVERS_TIMEOUT_S = 600.0
"""How long a trainer waits for the site's servers, which load their parts first."""
SAMPLER_ENDS_S = 1.0
"""How long after a broken connection a sampler that has died is looked for."""
CACHE_BYTES = 128 << 20
"""Validation batches are kept between epochs when they take no more than this in a worker."""


def open_site(argument: str, config: TrainingConfig, *, allow_sparse: bool) -> "SiteView":
    """Joins this process to its site; called once in a trainer, before torch.distributed is set up.

    Args:
        argument: the trainer's first argument, a `SitePlace`.
        config: how to batch and sample.
        allow_sparse: whether the model takes `SparseRows` (the built-in ones do).
    """
    place = SitePlace.from_argument(argument)
    torch.set_num_threads(1)
    dgl.utils.set_num_threads(1)
    one_host.apply(place.machine, place.shared_memory_prefix)
    seeded_sampling.join()
    leaving = _watch_samplers() if place.num_samplers else threading.Event()
    one_host.await_servers(place.ip_config, place.address, SERVERS_TIMEOUT_S)
    dgl.distributed.initialize(place.ip_config)
    # It would wait for the other trainers when this one has failed; `close` leaves in order.
    atexit.unregister(dist_context.exit_client)
    return SiteView(place, config, leaving, allow_sparse=allow_sparse)


def _watch_samplers() -> threading.Event:
    """Ends this trainer when a sampler of it has died, for which DGL would wait for half an hour.

    Returns:
        What to set before samplers are told to leave.
    """
    leaving = threading.Event()

    def watch() -> None:
        while not leaving.wait(1.0):
            ended = _ended_samplers()
            if ended and not leaving.is_set():
                fail(f"a sampler of it {describe(ended[0])}")

    threading.Thread(target=watch, name="sampler-watch", daemon=True).start()
    return leaving


def _ended_samplers() -> list[int]:
    pool, _ = dist_context.get_sampler_pool()
    codes = [process.exitcode for process in pool.process_list] if pool else []
    return [code for code in codes if code is not None]


def _blame_sampler() -> None:
    """Ends this trainer when a sampler of it has died, which may show just after its connections break."""
    until = time.monotonic() + SAMPLER_ENDS_S
    while time.monotonic() < until:
        if ended := _ended_samplers():
            fail(f"a sampler of it {describe(ended[0])}")
        time.sleep(0.05)


class SiteView:
    """What a trainer sees of its site. All methods but `fetch` take and give DGL's ids of the site.

    Args:
        place: where this trainer stands.
        config: how to batch and sample.
        leaving: set by `close`, from when on samplers may end.
        allow_sparse: whether the model takes `SparseRows`.

    Attributes:
        graph: the `DistGraph` of the whole site.
        start, stop: the ids of this trainer's own part are `start <= id < stop`.
        labels: of the own part, int64 [stop - start]; -1 for none.
    """

    def __init__(
        self, place: SitePlace, config: TrainingConfig, leaving: threading.Event, *, allow_sparse: bool
    ):
        self.place = place
        self._config = config
        self._leaving = leaving
        self.graph = dgl.distributed.DistGraph(place.graph_name)
        own = self.graph.get_partition_book().partid2nids(place.machine)
        self.start, self.stop = int(own[0]), int(own[-1]) + 1
        self.labels: Tensor = self.graph.ndata[LABELS][own]
        self.masks = {split: self._mask(name, own) for split, name in MASKS.items()}
        self.num_train = int(self.masks["train"].sum())
        self._features = FeatureStore(self.graph.ndata[FEATURES], own, allow_sparse=allow_sparse)
        self._loader: Any = None
        self._validation: list[Batch] | None = None
        begin_draws(draw_seed(config.seed, place.machine))

    def _mask(self, name: str, own: Tensor) -> Tensor:
        chosen: Tensor = self.graph.ndata[name][own] != 0
        return chosen & (self.labels >= 0)

    def nodes_of(self, split: str) -> Tensor:
        """Returns the own part's nodes of a split (`train`, `validation`, `test`), int64 ids."""
        return torch.nonzero(self.masks[split]).flatten() + self.start

    def features(self, nodes: Tensor) -> Tensor | SparseRows:
        """Returns the features of any distinct nodes of the site, float32 [n, num_features]."""
        return self._features.fetch(nodes)

    def set_in_degrees(self, blocks: list[Any], nodes: Tensor) -> None:
        """Sets `srcdata["in_degree"]` of all blocks; `nodes` are the sources of the first."""
        degrees = self.graph.ndata[IN_DEGREE][nodes]
        for block in blocks:
            # The sources of each block are the destinations of the one before it, its first sources.
            block.srcdata[IN_DEGREE] = degrees[: block.num_src_nodes()]

    def train_batches(self, epoch: int) -> Iterator[Batch]:
        """Yields one epoch of this trainer's training nodes, shuffled, with sampled neighbours."""
        if self.num_train == 0:
            return
        if self._loader is None:
            self._loader = dgl.dataloading.DistNodeDataLoader(
                self.graph,
                self.nodes_of("train"),
                NeighborSampler(self._config.layer_fan_outs),
                batch_size=self._config.batch_size,
                shuffle=False,  # its own shuffling goes on from the epoch before
                drop_last=False,
            )
        seed = draw_seed(self._config.seed, self.place.machine, epoch)
        begin_draws(seed)
        order = torch.Generator().manual_seed(seed)
        self._loader.data_idx = torch.randperm(self.num_train, generator=order)
        try:
            for inputs, seeds, blocks in self._loader:
                yield self._batch(inputs, seeds, blocks)
        except (OSError, EOFError):
            _blame_sampler()  # what a dead sampler leaves are broken connections
            raise

    def validation_batches(self) -> Iterator[Batch]:
        """Yields this trainer's validation nodes with all their neighbours, in order."""
        if self._validation is not None:
            yield from self._validation
            return
        kept: list[Batch] | None = []
        num_bytes = 0
        sampler = NeighborSampler([-1] * self._config.num_layers)
        for seeds in torch.split(self.nodes_of("validation"), self._config.batch_size):
            batch = self._batch(*sampler.sample_blocks(self.graph, seeds))
            num_bytes += batch.features.nbytes + sum(16 * block.num_edges() for block in batch.blocks)
            if kept is not None:
                kept = [*kept, batch] if num_bytes <= CACHE_BYTES else None
            yield batch
        self._validation = kept

    def one_hop(self, nodes: Tensor) -> tuple[Any, Tensor]:
        """Returns the block of all in-neighbours of `nodes`, and the ids of its sources."""
        inputs, _, blocks = NeighborSampler([-1]).sample_blocks(self.graph, nodes)
        self.set_in_degrees(blocks, inputs)
        return blocks[0], inputs

    def whole_neighbourhood(self, nodes: Tensor, num_layers: int) -> Batch:
        """Returns a batch of any own nodes with all their neighbours up to `num_layers` hops."""
        return self._batch(*NeighborSampler([-1] * num_layers).sample_blocks(self.graph, nodes))

    def _batch(self, inputs: Tensor, seeds: Tensor, blocks: list[Any]) -> Batch:
        self.set_in_degrees(blocks, inputs)
        return Batch(blocks=blocks, features=self.features(inputs), labels=self.labels[seeds - self.start])

    def barrier(self) -> None:
        """Waits until all trainers of the site have come here."""
        self.graph.barrier()

    def close(self) -> None:
        """Leaves the site in order: waits for the other trainers, then ends samplers and servers."""
        self._leaving.set()
        self._loader = None
        self._validation = None
        dist_context.exit_client()
