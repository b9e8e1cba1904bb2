"""What steps share that read each site's tables at the site, and keep what they make in its store."""

from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from typing import Any

from ..._files import InputError
from ..._files.uri import is_object_store
from ..._launch.launch_options import LaunchOptions
from ..clusters.site_pods import check_pods
from ..topology_file import written_out


@dataclass(frozen=True, kw_only=True)
class AtStores(LaunchOptions):
    """Whose tables are read where; a step's config inherits from it and calls `check_sites`."""

    # Without slots, as LaunchOptions.

    tables: Mapping[str, Any] = field(default_factory=dict)
    """Tables of each site, `{name: {option: URI}}`, as the site's pod reads them."""
    topology: Mapping[str, Any] = field(default_factory=dict)
    """Where each site's pod goes, and `storage`, the URI of the site's own store, where what is made of its
    tables stays."""
    timeout_s: int = 7200
    """Seconds after which the whole is ended as failed."""

    def orders(self, site: str) -> dict[str, Any]:
        """Returns what a site's pod is told of its tables, in JSON.

        Args:
            site: its name.
        """
        raise NotImplementedError

    def check_sites(self, of_tables: Set[str]) -> None:
        """Checks the values, and reads the topology where it is a file.

        Args:
            of_tables: options of a site's tables.

        Raises:
            InputError: one that is not allowed; the message names the option, the value and what is.
        """
        object.__setattr__(self, "topology", written_out(self.topology))
        if self.timeout_s < 1:
            raise InputError(f"timeout_s {self.timeout_s!r}: must be at least 1")
        self._check_tables(of_tables)
        check_pods(self.topology)
        self.check_launch()
        self._check_storage()

    def _check_tables(self, of_tables: Set[str]) -> None:
        check_keys("tables", self.tables, self.tables)
        for site, tables in self.tables.items():
            check_keys(f"tables[{site!r}]", tables, of_tables)
            if not tables:
                raise InputError(f"tables[{site!r}] is {{}}, allowed: URIs of {', '.join(sorted(of_tables))}")
            try:
                self.orders(site)
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


def check_keys(option: str, given: Any, allowed: Any) -> None:
    """Raises `InputError` where an option is no mapping, or has keys that are not allowed."""
    if not isinstance(given, Mapping):
        raise InputError(f"{option} is {given!r}, allowed: a mapping")
    if unknown := sorted(set(given) - set(allowed)):
        raise InputError(f"{option} has {unknown}, allowed: {', '.join(sorted(allowed))}")
