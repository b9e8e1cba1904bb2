"""What can be chosen about reading rows at each site."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from ...shard.config import ShardConfig
from .at_stores import AtStores, check_keys

_OF_TABLES = frozenset({"table", "images", "labels"})
_OF_SITES = frozenset({"site_column", "num_sites", "method", "alpha", "site_names", "seed"})
"""Options of `shard_table` that are about whose rows are whose."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SiteShardConfig(AtStores):
    """How rows are read at each site, by a pod there.

    Raises:
        InputError: a value that is not allowed; the message names the option, the value and what is.
    """

    shard: Mapping[str, Any] = field(default_factory=dict)
    """Further options of `shard_table` but those about sites, the same at all of them."""
    seed: int = 0
    """Seed of the division into training, validation and test rows by fractions."""

    def __post_init__(self) -> None:
        """Checks the values."""
        known = {each.name for each in fields(ShardConfig)} - _OF_TABLES - _OF_SITES
        check_keys("shard", self.shard, known)
        ShardConfig(seed=self.seed)
        self.check_sites(_OF_TABLES)

    def orders(self, site: str) -> dict[str, Any]:
        """See `AtStores`."""
        own = {**self.shard, **self.tables[site], "num_sites": 1, "site_names": [site], "seed": self.seed}
        return {"shard": asdict(ShardConfig(**own))}
