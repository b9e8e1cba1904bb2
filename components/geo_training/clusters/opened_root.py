"""Where the root is reached, when only the Service that opens its port tells. Knows nothing of models."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from ..._files import InputError
from ..._launch import progress
from ..._launch.launch_step import Surroundings, opened
from ..planned_tree import PlannedTree
from ..topology import ROOT, Topology
from ..transport.base import Address
from ..tree_job import TreeJob
from .launching import TreeLaunch, placed_launches
from .site_pods import ROOT_PORT


@contextmanager
def opened_root(
    of: TreeLaunch, tree: PlannedTree, number: int, job: TreeJob, surroundings: Surroundings
) -> Iterator[TreeJob]:
    """Yields a tree's job in which all nodes know where the root is reached; its pods are run in the block.

    Certificates are of nodes, not of addresses: they hold wherever the root is reached.

    Args:
        of: what the pods are.
        tree: the tree.
        number: of the attempt; each has a Service of its own.
        job: the attempt's.
        surroundings: the step's.

    Raises:
        InputError: pods are processes, and the root's address is not given.
        ProcessFailed: the root's cluster gives no address in time.
    """
    service = tree.pod_places.root.service
    if service is None or service.is_known:
        yield job
        return
    if surroundings.run is not None and surroundings.open_port is None:
        raise InputError("topology['root']: must be host:port where no cluster gives the root an address")
    placed = placed_launches(of, tree, number)[0]
    with opened(placed, ROOT, of.options, surroundings) as (host, port):
        address = Address(host, port)
        progress(f"the root is reached at {address}")
        yield replace(job, topology=reached_at(job.topology, address))


def reached_at(topology: Topology, address: Address) -> Topology:
    """Returns a topology whose root is reached at an address, and listens in its pod as before."""
    return replace(topology, root=address, binds={**topology.binds, address: Address(ROOT, ROOT_PORT)})
