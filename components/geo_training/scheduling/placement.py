"""MultiGPS: which of several roots holds what, each about as many bytes. Knows nothing of networks.

GeoMX places a small tensor by a hash of its key and cuts a large one evenly. Here the largest unit goes to
the root with the fewest bytes, then the next (Graham, *Bounds on Multiprocessing Timing Anomalies*, 1969): no
root has more than the mean and one unit.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated

from ..._files import InputError
from ..spec import Interval, OneOf, check
from ..wire.units import Unit

AT_SITES, AT_ROOT = "sites", "root"
PIECES_A_SHARD = 8
"""Units that a shard has at least, where one large tensor is most of a model."""


@dataclass(frozen=True, kw_only=True, slots=True)
class MultiGps:
    """Several roots, each of which ends the rounds of its own units (MultiGPS of GeoMX).

    Raises:
        InputError: a value that is not allowed; names the option, the value and what is.
    """

    shards: Annotated[int, Interval(low=2, high=64)] = 2
    """Roots in all."""
    at: Annotated[str, OneOf((AT_SITES, AT_ROOT))] = AT_SITES
    """Where the others are: `sites`, each at a site of its own, or `root`, all beside the first."""

    def __post_init__(self) -> None:
        """Checks the values."""
        check(self)

    def check_sites(self, num_accepting: int) -> None:
        """Holds the choice against a topology.

        Args:
            num_accepting: sites of it that accept connections.

        Raises:
            InputError: more roots are to be at sites.
        """
        needed = self.shards - 1
        if self.at == AT_SITES and num_accepting < needed:
            raise InputError(
                f"transmission: multigps(shards={self.shards}, at=sites) needs {needed} sites that accept "
                f"connections, topology has {num_accepting} with 'accepts', allowed: as many, or at=root"
            )


def placed(units: Iterable[Unit], num_shards: int) -> Mapping[Unit, int]:
    """Returns the shard of each unit, from 0; the same wherever the units are the same.

    Args:
        units: all of a model, each once.
        num_shards: how many shards there are.
    """
    loads = [0] * num_shards
    found: dict[Unit, int] = {}
    for unit in sorted(units, key=lambda unit: (-unit.count, unit)):
        shard = loads.index(min(loads))
        loads[shard] += unit.count
        found[unit] = shard
    return found
