"""What can be chosen about partitioning at each site."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from ..._files import InputError
from ...ingest.config import IngestConfig
from ...partition.config import PartitionConfig
from .at_stores import AtStores, check_keys

_OF_TABLES = frozenset({"nodes", "edges", "features"})


@dataclass(frozen=True, kw_only=True, slots=True)
class SitePartitionConfig(AtStores):
    """How tables are read and divided at each site, by a pod there.

    Raises:
        InputError: a value that is not allowed; the message names the option, the value and what is.
    """

    ingest: Mapping[str, Any] = field(default_factory=dict)
    """Further options of `ingest_graph`, the same at all sites."""
    num_parts: int = 2
    """Number of parts (workers) of each site."""
    partition_method: str = "metis"
    """How each site is divided into parts: `metis` or `random`."""
    halo_hops: int = 1
    """Hops of in-neighbours that a part knows beyond its own nodes."""
    seed: int = 0
    """Seed of the division; the same seed gives the same parts."""

    def __post_init__(self) -> None:
        """Checks the values."""
        if self.partition_method == "attribute":
            raise InputError("partition_method is 'attribute'; allowed: metis, random")
        _ = self.partition
        known = {each.name for each in fields(IngestConfig)} - _OF_TABLES
        check_keys("ingest", self.ingest, known)
        self.check_sites(_OF_TABLES)

    @property
    def partition(self) -> PartitionConfig:
        """How each site is divided."""
        return PartitionConfig(
            num_parts=self.num_parts,
            partition_method=self.partition_method,
            halo_hops=self.halo_hops,
            seed=self.seed,
        )

    def orders(self, site: str) -> dict[str, Any]:
        """See `AtStores`."""
        ingest = IngestConfig(**{**self.ingest, **self.tables[site]})
        return {"ingest": asdict(ingest), "partition": asdict(self.partition)}
