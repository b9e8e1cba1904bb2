"""The process of one aggregator, of a site or the root. Knows nothing of models.

python -m geokfp.components.geo_training.server NODE TREE.json
"""

import sys
import threading
import time
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path

from .._files import InputError
from .._launch import fail, progress
from .checkpoints.answers import ANSWERS, MOST_BYTES, Answers
from .checkpoints.journal import Journal
from .checkpoints.memory import Memory
from .checkpoints.node_checkpoints import Keeper, node_keeper
from .compression import Compressor, compression
from .compression.needed import bytes_a_value
from .errors import GeoError
from .heap import share_heap
from .links.carrier import Carrier
from .links.client import Client, ClientSettings
from .links.heartbeats import Silence
from .links.in_blocks import carrier, differential, open_dock, service_of
from .metrics import UNOBSERVED, Observer
from .metrics.watch import recorder_of, watching
from .nodes.aggregator import Aggregator, AggregatorSettings
from .nodes.entering import Entry
from .nodes.presence import FaultRules
from .nodes.shards import ShardRouter
from .relaying import Uplink
from .relaying.assembly import Reach, root_relaying, site_relay
from .scheduling import transmission
from .security import check_certificates, transport
from .synchronization import NodePolicy, synchronization
from .synchronization.node import Root
from .topology import ROOT
from .transport.base import Connection
from .tree_job import TreeJob
from .wire.messages import Answer

ATTEMPT_S = 10.0
"""How long at most a node waits for an answer before it looks up the other's addresses again."""


def main(arguments: list[str]) -> None:
    """Serves until all children have left.

    Args:
        arguments: the node's name and the path of a `TreeJob`.

    Raises:
        InputError: a name that no node has, a job that is none, a certificate that others would refuse.
        GeoError: a round waited too long, or a node was lost.
    """
    name, job = arguments[0], TreeJob.read(Path(arguments[1]))
    _check_name(job, name)
    threading.excepthook = end_process
    share_heap()
    check_certificates(job.certificates, (name,))
    address, roots = job.address(name), tuple(root.name for root in job.roots)
    service = service_of(job) if name in roots else 0
    reached = transport(job.certificates, job.topology, name, address, service=service)
    listener = reached.listen(job.bound(name))
    policy, down, up = _parts(job, name)
    cuts = {root: differential(job, name) for root in roots}
    blocks = {f"blocks of {root}": cut for root, cut in cuts.items() if cut is not None}
    parts = {"policy": policy, "down": down, "up": up, **blocks}
    keeper = node_keeper(job, name, parts)
    memory, recorder = _memory(job, policy, keeper), recorder_of(job)
    up_links: dict[str, Uplink] = {}
    for root in roots if name not in roots else ():
        client = dial(job, name, root, carrier(job, root, up, cuts[root]), recorder)
        up_links[root] = _uplink(job, name, client)
    aggregator = Aggregator(
        AggregatorSettings(
            name=name,
            run=job.run_id,
            children=frozenset(job.children(name)),
            observer=recorder or UNOBSERVED,
            holds_back=_holds_back(job),
            faults=_fault_rules(job, ends_with_process=name in roots and memory is None),
        ),
        listener,
        ShardRouter(job.topology, roots),
        policy,
        down,
        up_links,
    )
    open_dock(job, name, aggregator.dock)
    if name == ROOT and (relays := job.relays) is not None:
        used = recorder.relayed if recorder is not None else None
        aggregator.relaying = root_relaying(job.run_id, job.topology, relays, aggregator.send, used)
    aggregator.answers = _answers(job, name, aggregator.dock.answer)
    if keeper is not None and job.resume:
        aggregator.load_state(keeper.restore(job.resume))
        progress(f"goes on from checkpoint {job.resume}")
    with watching(job, name, recorder, aggregator.traffic):
        aggregator.serve(keeper, memory)
    if memory is not None:
        memory.forget()
    if aggregator.answers is not None:
        aggregator.answers.forget()


def command(arguments: list[str]) -> int:
    """Does what `main` does for whoever types the command; what is wrong is one line then.

    Returns:
        Its exit status: 0 done, 1 failed, 2 bad usage.
    """
    if len(arguments) != 2:
        return _ended("usage: python -m geokfp.components.geo_training.server NODE TREE.json", 2)
    try:
        main(arguments)
    except InputError as error:
        return _ended(str(error), 2)
    except GeoError as error:
        return _ended(f"{arguments[0]}: {error}", 1)
    return 0


def _ended(reason: str, status: int) -> int:
    sys.stderr.write(f"geokfp: {' '.join(reason.split())}\n")
    return status


def _check_name(job: TreeJob, name: str) -> None:
    names = (*(root.name for root in job.roots), *(site.name for site in job.topology.sites))
    if name not in names:
        raise InputError(f"NODE {name!r}, allowed: {', '.join(names)}")


def _holds_back(job: TreeJob) -> bool:
    waits_for_all = synchronization(job.synchronization).quorum is None
    return waits_for_all and job.relays is None and len(job.roots) == 1


def _fault_rules(job: TreeJob, *, ends_with_process: bool) -> FaultRules:
    chosen = synchronization(job.synchronization)
    refused = chosen.cannot_enter or transmission(job.transmission).cannot_enter
    return FaultRules(
        silence_s=job.silence_s,
        reconnect_s=job.reconnect_s + job.silence_s,  # the peer itself gives up a little earlier
        leaves_out=chosen.quorum is not None,
        ends_with_process=ends_with_process,
        entry=Entry(changes="" if refused else chosen.changes, refused=refused),
    )


def _uplink(job: TreeJob, name: str, client: Client) -> Uplink:
    """Returns a site's way to a root, by other sites where these relay: then there is one root."""
    if job.relays is None:
        return client

    def to_site(site: str) -> Connection:
        address = job.topology.site(site).accepts
        assert address is not None
        return transport(job.certificates, job.topology, name, address, site).connect(
            address, min(ATTEMPT_S, job.silence_s)
        )

    accepts, listener = job.topology.site(name).accepts, None
    if accepts is not None:
        bound = job.topology.bound(accepts)
        listener = transport(job.certificates, job.topology, name, accepts).listen(bound)
    silence = Silence(job.silence_s)
    reach = Reach(dial=to_site, listener=listener, observer=client.observer, silence=silence)
    return site_relay(name, job.run_id, job.topology, client, reach)


def _parts(job: TreeJob, name: str) -> tuple[NodePolicy, Compressor, Compressor]:
    """Returns what a node is made of: its policy, and what encodes towards workers and towards the root."""
    chosen = synchronization(job.synchronization)
    between_sites, in_site = compression(job.compression), compression("none")
    if job.root(name) is not None:
        needed = None if between_sites.is_planned else bytes_a_value(between_sites)
        root = chosen.root(follows=job.checkpoint_every > 0, bytes_a_value=needed)
        return root, between_sites.listening(between_sites.down()), in_site.up()
    return chosen.node(), between_sites.listening(in_site.down()), between_sites.up()


def _answers(job: TreeJob, name: str, send: Callable[[str, Answer], None]) -> Answers | None:
    """Returns what a node keeps of its answers; None for nothing."""
    keeping = [root.name for root in job.roots if job.keeps_answers]
    keeping += [site.name for site in job.topology.sites if job.answers_workers]
    if name not in keeping:
        return None
    folder = Path(job.checkpoint_folder) / ANSWERS / job.member(name)
    return Answers(folder, send, frozenset(job.children(name)), MOST_BYTES // len(keeping))


def _memory(job: TreeJob, policy: NodePolicy, keeper: Keeper | None) -> Memory | None:
    """Returns what a root that keeps checkpoints by itself remembers; None for other nodes."""
    if keeper is None or not job.checkpoint_every or not isinstance(policy, Root):
        return None
    return Memory(keeper, Journal(Path(job.checkpoint_folder) / job.digest), policy, time.monotonic)


def dial(
    job: TreeJob,
    name: str,
    peer: str,
    up: Carrier | None = None,
    observer: Observer | None = None,
) -> Client:
    """Returns the client of a node's link to the node above it.

    Args:
        job: the tree.
        name: the node.
        peer: the node above it.
        up: how pushes travel; None sends all as it is.
        observer: is told what happens on the link; None tells nobody.

    Raises:
        GeoError: the peer cannot be reached, or refuses.
    """
    settings = ClientSettings(
        name=name,
        peer=peer,
        run=job.run_id,
        round_timeout_s=job.round_timeout_s,
        reconnect_s=job.reconnect_s,
        silence_s=job.silence_s,
        # The root knows a site that comes back, whose node is as new as its workers; a node its worker.
        has_begun=job.comes_back == ("worker" if job.root(peer) is None else "site"),
    )
    address = job.address(peer)
    service = service_of(job) if job.root(peer) is not None else 0
    reached = transport(job.certificates, job.topology, name, address, peer, service)
    connect = partial(reached.connect, address, min(ATTEMPT_S, job.silence_s))
    whole = compression("none").up()
    return Client(settings, connect, whole, observer=observer or UNOBSERVED, carrier=up)


def end_process(failure: threading.ExceptHookArgs) -> None:
    """Ends the process when one of its threads fails: a node without its threads would only look alive."""
    traceback.print_exception(failure.exc_type, failure.exc_value, failure.exc_traceback)
    fail(failure.exc_value or failure.exc_type())


if __name__ == "__main__":
    sys.exit(command(sys.argv[1:]))
