"""Sites given by the nodes' own site: data that may not move stays where it is."""

import numpy as np

from .._files import InputError
from ..ingest.graph import Array


def attribute(sites: Array | None, site_names: tuple[str, ...], num_sites: int) -> Array:
    """Returns the site of each node.

    Args:
        sites: int [n], index into `site_names`; None when the nodes carry no site.
        site_names: name of each site.
        num_sites: how many are asked for; 0 takes as many as there are.

    Returns:
        int64 [n], index into `site_names`.

    Raises:
        InputError: the nodes carry no site, or there are not `num_sites` of them.
    """
    if sites is None:
        raise InputError(
            "partition_method is 'attribute' but the graph carries no sites; "
            "name the nodes' column in site_column of ingest_graph"
        )
    found = len(site_names)
    if num_sites not in (0, found):
        some = ", ".join(site_names[:8]) + (", ..." if found > 8 else "")
        raise InputError(
            f"num_sites is {num_sites} but the nodes carry {found} sites ({some}); "
            f"allowed with partition_method 'attribute': {found}, or 0 for as many as there are"
        )
    return np.asarray(sites, dtype=np.int64)
