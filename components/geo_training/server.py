"""The process of one aggregator, of a site or the root. Knows nothing of models.

python -m geokfp.components.geo_training.server NODE TREE.json
"""

import sys
import threading
import traceback
from functools import partial
from pathlib import Path

from .._launch import fail
from .aggregator import Aggregator, AggregatorSettings
from .client import Client, ClientSettings
from .compression import compression
from .route import TreeRouter
from .synchronization import synchronization
from .topology import ROOT
from .transport.base import Transport
from .transport.tcp import TcpTransport
from .tree_job import TreeJob

CONNECT_S = 60.0
"""How long a node tries to reach another, at the start and when a connection was lost."""


def main(arguments: list[str]) -> None:
    """Serves until all children have left.

    Args:
        arguments: the node's name and the path of a `TreeJob`.

    Raises:
        GeoError: a round waited too long, or a node was lost.
    """
    name, job = arguments[0], TreeJob.read(Path(arguments[1]))
    threading.excepthook = end_process
    topology, transport = job.topology, TcpTransport()
    listener = transport.listen(topology.address(name))
    parents = () if name == ROOT else (ROOT,)
    chosen = synchronization(job.synchronization)
    aggregator = Aggregator(
        AggregatorSettings(name=name, run=job.run_id, children=frozenset(topology.children(name))),
        listener,
        TreeRouter(topology),
        chosen.root() if name == ROOT else chosen.node(),
        compression(job.compression if name == ROOT else "none").down(),
        {parent: dial(job, name, parent, transport) for parent in parents},
    )
    aggregator.serve()


def dial(job: TreeJob, name: str, peer: str, transport: Transport) -> Client:
    """Returns the client of a node's link to the node above it.

    Raises:
        GeoError: the peer cannot be reached, or refuses.
    """
    settings = ClientSettings(
        name=name,
        peer=peer,
        run=job.run_id,
        round_timeout_s=job.round_timeout_s,
        reconnect_s=CONNECT_S,
    )
    between_sites = compression(job.compression if peer == ROOT else "none")
    connect = partial(transport.connect, job.topology.address(peer), CONNECT_S)
    return Client(settings, connect, between_sites.up())


def end_process(failure: threading.ExceptHookArgs) -> None:
    """Ends the process when one of its threads fails: a node without its threads would only look alive."""
    traceback.print_exception(failure.exc_type, failure.exc_value, failure.exc_traceback)
    fail(failure.exc_value or failure.exc_type())


if __name__ == "__main__":
    main(sys.argv[1:])
