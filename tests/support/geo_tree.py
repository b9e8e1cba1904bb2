"""A whole tree of aggregators in threads of the test's process, over any transport."""

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from geokfp.components.geo_training.checkpoints.node_checkpoints import Keeper, Shelf
from geokfp.components.geo_training.compression import Compressor
from geokfp.components.geo_training.compression import compression as named
from geokfp.components.geo_training.errors import GeoError
from geokfp.components.geo_training.links.carrier import Carrier, InBlocks
from geokfp.components.geo_training.links.client import Client, ClientSettings
from geokfp.components.geo_training.metrics import UNOBSERVED, Observer
from geokfp.components.geo_training.nodes.aggregator import Aggregator, AggregatorSettings
from geokfp.components.geo_training.nodes.shards import ShardRouter, shards_of
from geokfp.components.geo_training.relaying.assembly import Reach, root_relaying, site_relay
from geokfp.components.geo_training.relaying.site import SiteRelay
from geokfp.components.geo_training.scheduling import transmission as sent
from geokfp.components.geo_training.scheduling.differential import Differential
from geokfp.components.geo_training.synchronization import synchronization as chosen
from geokfp.components.geo_training.topology import ROOT, Site, Topology
from geokfp.components.geo_training.transport.base import Address, Transport
from geokfp.components.geo_training.wire.relay_messages import Trees

RUN = "test-run"


class Tree:
    """The aggregators of a topology, each served by a thread; `errors` holds what they ended with."""

    def __init__(
        self,
        topology: Topology,
        transport: Transport,
        *,
        round_timeout_s: float,
        retry_s: float,
        synchronization: str = "fsa",
        compression: str = "none",
        transmission: str = "fifo",
        stalled_s: float = 10.0,
        checkpoints: Path | None = None,
        resume: int = 0,
        observer: Observer = UNOBSERVED,
        secret: bool = False,
    ):
        self.secret = secret
        self.synchronization = chosen(synchronization)
        self.relays = sent(transmission).rules.get("tsengine")
        self.topology = topology
        self.roots = shards_of(topology, sent(transmission).multigps)
        self.transport = transport
        self.compression = compression
        self.in_site = named("none")
        self.dgt = sent(transmission).rules.get("dgt")
        self.cuts: dict[str, Differential] = {}
        self.retry_s = retry_s
        self.stalled_s = stalled_s
        self.round_timeout_s = round_timeout_s
        self.checkpoints = checkpoints
        self.resume = resume
        self.observer = observer
        self.errors: dict[str, GeoError] = {}
        self.aggregators: dict[str, Aggregator] = {}
        self.used_trees: list[Trees] = []
        self._threads = []
        for name in (*self._root_names, *(site.name for site in topology.sites)):
            thread = threading.Thread(target=self._serve, args=(name, *self._aggregator(name)))
            thread.start()
            self._threads.append(thread)

    def client(
        self,
        name: str,
        peer: str | None = None,
        up: Compressor | None = None,
        carrier: Carrier | None = None,
        **settings,
    ) -> Client:
        peer = peer or self.topology.site(name).name
        options = {
            "reconnect_s": 10.0,
            "round_timeout_s": self.round_timeout_s,
            "retry_s": self.retry_s,
            "run": RUN,
            **settings,
        }
        return Client(
            ClientSettings(name=name, peer=peer, **options),
            lambda: self.transport.connect(self._address(peer), 5.0),
            up or self.in_site.up(),
            observer=self.observer,
            carrier=carrier,
        )

    @property
    def _root_names(self) -> tuple[str, ...]:
        return tuple(root.name for root in self.roots)

    def _address(self, name: str) -> Address:
        found = (root.address for root in self.roots if root.name == name)
        return next(found, None) or self.topology.address(name)

    def join(self) -> None:
        for thread in self._threads:
            thread.join(20.0)
            assert not thread.is_alive()

    def _carrier(self, name: str, root: str, up: Compressor) -> Carrier | None:
        if self.dgt is None:
            return None
        link = name if root == ROOT else f"{name} to {root}"
        self.cuts[link] = Differential(self.dgt, named(self.compression).up_blocks())
        return InBlocks(up, self.cuts[link], self._address(root), root, secret=self.secret)

    def _aggregator(self, name: str) -> tuple[Aggregator, Keeper | None]:
        is_root = name in self._root_names
        policy = self.synchronization.root() if is_root else self.synchronization.node()
        between_sites = named(self.compression)
        down = between_sites.listening((between_sites if is_root else self.in_site).down())
        up = between_sites.up()
        uplinks = () if is_root else self._root_names
        carriers = {root: self._carrier(name, root, up) for root in uplinks}
        aggregator = Aggregator(
            AggregatorSettings(
                name=name,
                run=RUN,
                children=frozenset(self.topology.children(ROOT if is_root else name)),
                observer=self.observer,
                holds_back=self.relays is None and len(self.roots) == 1 and not self.synchronization.quorum,
            ),
            self.transport.listen(self._address(name)),
            ShardRouter(self.topology, self._root_names),
            policy,
            down,
            {root: self._uplink(name, self.client(name, root, up, carriers[root])) for root in uplinks},
        )
        self.aggregators[name] = aggregator
        if self.dgt is not None and is_root:
            aggregator.dock.open(self._address(name), secret=self.secret)
        if is_root and self.relays is not None:
            self.relaying = root_relaying(
                RUN, self.topology, self.relays, aggregator.send, self.used_trees.append
            )
            aggregator.relaying = self.relaying
        if self.checkpoints is None:
            return aggregator, None
        keeper = Keeper(Shelf(self.checkpoints, name), {"policy": policy, "down": down, "up": up})
        if self.resume:
            aggregator.load_state(keeper.restore(self.resume))
        return aggregator, keeper

    def _uplink(self, name: str, client: Client) -> Client | SiteRelay:
        if self.relays is None:
            return client
        accepts = self.topology.site(name).accepts
        reach = Reach(
            dial=lambda site: self.transport.connect(self.topology.site(site).accepts, 5.0),
            listener=None if accepts is None else self.transport.listen(accepts),
            stalled_s=self.stalled_s,
        )
        return site_relay(name, RUN, self.topology, client, reach)

    def _serve(self, name: str, aggregator: Aggregator, keeper: Keeper | None) -> None:
        try:
            aggregator.serve(keeper)
        except GeoError as error:
            self.errors[name] = error


def topology(
    num_sites: int, num_workers: int, ports: list[int] | None = None, accepting: int = 0
) -> Topology:
    """Returns a tree on this machine, whose first `accepting` sites accept connections.

    They do so at the ports after those of root and sites, where there are such, else at in-memory ones.
    """
    ports = ports or list(range(1, num_sites + 2))
    behind = ports[num_sites + 1 :] or [101 + i for i in range(num_sites)]
    accepts = [Address("127.0.0.1", behind[i]) if i < accepting else None for i in range(num_sites)]
    sites = tuple(
        Site(f"site-{i}", num_workers, Address("127.0.0.1", ports[i + 1]), accepts[i])
        for i in range(num_sites)
    )
    return Topology(Address("127.0.0.1", ports[0]), sites)


@contextmanager
def tree(
    shape: Topology,
    transport: Transport,
    *,
    round_timeout_s: float = 30.0,
    retry_s: float = 5.0,
    **choices: Any,
) -> Iterator[Tree]:
    """Serves the tree for the block; at its end every aggregator must have come to its own."""
    whole = Tree(shape, transport, round_timeout_s=round_timeout_s, retry_s=retry_s, **choices)
    yield whole
    whole.join()


def at_once(work: Callable[[str], object], names: Sequence[str]) -> dict[str, object]:
    """Runs `work(name)` for all names at the same time; returns results, or raises the first name's error."""
    with ThreadPoolExecutor(len(names)) as threads:
        futures = {name: threads.submit(work, name) for name in names}
    return {name: future.result() for name, future in futures.items()}
