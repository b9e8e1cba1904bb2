"""Options of `partition_graph`."""

from dataclasses import dataclass

from .._files import InputError
from .._launch.launch_options import LaunchOptions
from ..ingest.config import MAX_SEED

METHODS = ("metis", "random", "attribute")


@dataclass(frozen=True, kw_only=True, slots=True)
class PartitionConfig(LaunchOptions):
    """How a graph is divided into sites, and each site into parts."""

    num_sites: int = 1
    """Number of sites; with `attribute`, as many as the data has, or 0 to take those."""
    num_parts: int = 2
    """Number of parts (workers) of each site."""
    partition_method: str = "metis"
    """`metis`, `random` or `attribute` (sites are those of the nodes' site column; parts by `metis`), for
    the outermost level: the sites when there are several, else the parts. Parts inside several sites are made
    by `metis`, or by `random` when that was asked for."""
    halo_hops: int = 1
    """Hops of in-neighbours that a part knows beyond its own nodes."""
    balance_train: bool = True
    """Whether `metis` evens out training nodes, beside nodes, to 5 % or the next whole number."""
    balance_edges: bool = False
    """Whether `metis` balances the sum of nodes and edges, each scaled to the same total, and not nodes."""
    seed: int = 0
    """Seed of the method; the same seed gives the same parts."""
    fingerprint: str = ""
    """Fingerprint that the graph must have, so that a cached result follows the contents; empty for any."""

    def __post_init__(self) -> None:
        self.check_launch()
        if self.partition_method not in METHODS:
            raise InputError(f"partition_method is {self.partition_method!r}; allowed: {', '.join(METHODS)}")
        least_sites = 0 if self.partition_method == "attribute" else 1
        for name, least in (("num_sites", least_sites), ("num_parts", 1), ("halo_hops", 1)):
            value = getattr(self, name)
            if value < least:
                raise InputError(f"{name} is {value}; allowed: {least} or more")
        if not 0 <= self.seed <= MAX_SEED:
            raise InputError(f"seed is {self.seed}; allowed: 0 to {MAX_SEED}")
