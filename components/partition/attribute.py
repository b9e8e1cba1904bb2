"""Parts given by the nodes' own site: data that may not move stays where it is."""

import numpy as np

from .._files import InputError
from ..ingest.graph import Array, Graph


def attribute(graph: Graph, count: int, *, option: str) -> Array:
    """Returns the site of each node.

    Args:
        graph: a graph whose nodes carry a site.
        count: how many are asked for; 0 takes as many as there are.
        option: the option that `count` comes from, for the error.

    Returns:
        int64 [n], index into the graph's site names.

    Raises:
        InputError: the nodes carry no site, or there are not `count` of them.
    """
    if graph.sites is None:
        raise InputError(
            "partition_method is 'attribute' but the nodes carry no site; name their column in site_column"
        )
    found = len(graph.site_names)
    if count not in (0, found):
        raise InputError(
            f"{option} is {count} but the nodes carry {found} sites ({', '.join(graph.site_names[:8])}); "
            f"allowed with partition_method 'attribute': {found}"
        )
    return np.asarray(graph.sites, dtype=np.int64)
