"""What can be chosen about partitioning at each site."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from ..._files import InputError
from ..._files.uri import is_object_store
from ..._launch.launch_options import LaunchOptions
from ...ingest.config import IngestConfig
from ...partition.config import PartitionConfig
from ..clusters.site_pods import check_pods
from ..topology_file import written_out

_OF_TABLES = ("nodes", "edges", "features")


@dataclass(frozen=True, kw_only=True, slots=True)
class SitePartitionConfig(LaunchOptions):
    """How tables are read and divided at each site, by a pod there.

    Raises:
        InputError: a value that is not allowed; the message names the option, the value and what is.
    """

    tables: Mapping[str, Any] = field(default_factory=dict)
    """Tables of each site, `{name: {"nodes": URI, "edges": URI, "features": URI}}`, as the site's pod reads
    them."""
    ingest: Mapping[str, Any] = field(default_factory=dict)
    """Further options of `ingest_graph`, the same at all sites."""
    topology: Mapping[str, Any] = field(default_factory=dict)
    """Where each site's pod goes, and `storage`, the URI of the site's own store, where its parts stay."""
    num_parts: int = 2
    """Number of parts (workers) of each site."""
    partition_method: str = "metis"
    """How each site is divided into parts: `metis` or `random`."""
    halo_hops: int = 1
    """Hops of in-neighbours that a part knows beyond its own nodes."""
    seed: int = 0
    """Seed of the division; the same seed gives the same parts."""
    timeout_s: int = 7200
    """Seconds after which the whole is ended as failed."""

    def __post_init__(self) -> None:
        """Checks the values."""
        object.__setattr__(self, "topology", written_out(self.topology))
        if self.partition_method == "attribute":
            raise InputError("partition_method is 'attribute'; allowed: metis, random")
        _ = self.partition
        if self.timeout_s < 1:
            raise InputError(f"timeout_s {self.timeout_s!r}: must be at least 1")
        self._check_tables()
        check_pods(self.topology)
        self.check_launch()
        if not self.launches_pods:
            raise InputError(
                "launcher 'local': must be job, jobset, trainjob or dgljob, as a site's pod reads its tables"
            )
        self._check_storage()

    @property
    def partition(self) -> PartitionConfig:
        """How each site is divided."""
        return PartitionConfig(
            num_parts=self.num_parts,
            partition_method=self.partition_method,
            halo_hops=self.halo_hops,
            seed=self.seed,
        )

    def of_site(self, site: str) -> IngestConfig:
        """Returns how a site's tables are read."""
        return IngestConfig(**{**self.ingest, **self.tables[site]})

    def orders(self, site: str, storage: str) -> dict[str, Any]:
        """Returns what a site's pod is told, in JSON."""
        return {
            "site": site,
            "storage": storage,
            "ingest": asdict(self.of_site(site)),
            "partition": asdict(self.partition),
        }

    def _check_tables(self) -> None:
        known = {each.name for each in fields(IngestConfig)} - set(_OF_TABLES)
        _check_keys("ingest", self.ingest, known)
        _check_keys("tables", self.tables, self.tables)
        for site, tables in self.tables.items():
            _check_keys(f"tables[{site!r}]", tables, set(_OF_TABLES))
            if not tables:
                raise InputError(f"tables[{site!r}] is {{}}, allowed: URIs of {', '.join(_OF_TABLES)}")
            try:
                self.of_site(site)
            except InputError as error:
                raise InputError(f"tables[{site!r}]: {error}") from error

    def _check_storage(self) -> None:
        given = self.topology.get("sites", {})
        if not self.tables:
            raise InputError("tables is {}, allowed: a mapping of one or more sites to their tables")
        for site in self.tables:
            storage = given.get(site, {}).get("storage", "")
            if not (is_object_store(storage) or storage.startswith("/")):
                raise InputError(
                    f"topology['sites'][{site!r}]['storage'] is {storage!r}, allowed: an s3://, gs:// or "
                    "minio:// URI, or an absolute path that the site's pods mount"
                )


def _check_keys(option: str, given: Any, allowed: Any) -> None:
    if not isinstance(given, Mapping):
        raise InputError(f"{option} is {given!r}, allowed: a mapping")
    if unknown := sorted(set(given) - set(allowed)):
        raise InputError(f"{option} has {unknown}, allowed: {', '.join(sorted(allowed))}")
