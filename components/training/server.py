"""One DGL server: holds a part in shared memory and answers the site's trainers. Knows nothing of models."""

import dgl
import dgl.distributed
import torch

from . import one_host, seeded_sampling
from .site import SitePlace


def main(arguments: list[str]) -> None:
    """Serves until the site's trainers have left.

    Args:
        arguments: the `SitePlace` of this server.
    """
    place = SitePlace.from_argument(arguments[0])
    torch.set_num_threads(1)
    dgl.utils.set_num_threads(1)
    one_host.apply(place.machine, place.shared_memory_prefix)
    seeded_sampling.serve()
    dgl.distributed.initialize(place.ip_config)
