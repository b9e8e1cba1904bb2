"""What of a tree's nodes sends and takes blocks, as its job says: the rule `dgt` of `transmission`."""

from ..compression import Compressor, compression
from ..scheduling import transmission
from ..scheduling.dgt import Dgt
from ..scheduling.differential import Differential
from ..transport.datagram import SERVICE_STEP
from ..tree_job import TreeJob
from .carrier import Carrier, InBlocks, Whole
from .dock import Dock


def differential(job: TreeJob, name: str) -> Differential | None:
    """Returns what cuts a node's pushes to the root into blocks; None where they travel whole."""
    rule = _rule(job)
    if rule is None or job.root(name) is not None:
        return None
    return Differential(rule, compression(job.compression).up_blocks())


def carrier(job: TreeJob, peer: str, up: Compressor, cut: Differential | None) -> Carrier:
    """Returns what a node's pushes to another one travel by.

    Args:
        job: the tree.
        peer: the node that takes them.
        up: encodes what is not cut.
        cut: cuts the others, one of its own for each link; None where all travel whole.
    """
    if cut is None:
        return Whole(up)
    return InBlocks(up, cut, job.address(peer), peer, secret=bool(job.certificates))


def open_dock(job: TreeJob, name: str, dock: Dock) -> None:
    """Lets a node take datagrams where sites send them to it.

    Raises:
        LinkClosedError: its address cannot be had.
    """
    if _rule(job) is not None and job.root(name) is not None:
        dock.open(job.bound(name), secret=bool(job.certificates))


def service_of(job: TreeJob) -> int:
    """Returns the type of service of links between sites: above all datagrams, 0 where there are none."""
    rule = _rule(job)
    return 0 if rule is None else rule.channels * SERVICE_STEP


def _rule(job: TreeJob) -> Dgt | None:
    rule: Dgt | None = transmission(job.transmission).rules.get("dgt")
    return None if rule is None or rule.is_off else rule
