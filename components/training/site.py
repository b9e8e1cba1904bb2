"""The processes of one site: a DGL server and a trainer beside each of its parts.

`site_roles` is called where the job is planned and imports neither torch nor DGL. What a process must
know of its place travels as its first argument, `SitePlace`; DGL's own settings travel as its
environment.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from .._launch import Replica, Role, free_ports
from .._launch.interfaces import interface_of
from .._launch.pod import PodPlace
from ..partition.partitions import SitePartitions

PRELOAD = (
    "torch",
    "torch.distributed",
    "torch._dynamo",
    "dgl",
    "dgl.distributed",
    "safetensors.torch",
    "geokfp.components.training.one_host",
)
"""What servers and trainers share by being forked from a process that has imported it."""

SERVER = "geokfp.components.training.server:main"
CONNECT_TRIES = 3000
"""Attempts of 0.1 s to reach a server or client before DGL gives up."""
POD_CONNECT_TRIES = 36_000
"""The same between pods, which start minutes apart; the launcher's own time limit comes before it."""
LOOPBACK = "127.0.0.1"
DGL_PORT = 30_050
"""Port of every pod's DGL server."""


@dataclass(frozen=True, kw_only=True)
class SitePlace:
    """Where a process stands in its site."""

    site: str
    """Name of the site."""
    machine: int
    """Number of the part, which DGL takes for a machine."""
    num_machines: int
    """Parts of the site; as many trainers."""
    shared_memory_prefix: str
    """What the names of this machine's shared memory begin with."""
    ip_config: str
    """File with one line a machine: address and port of its server."""
    graph_name: str
    """Name of the DGL graph."""
    num_samplers: int
    """Sampler processes of each trainer."""
    address: str = LOOPBACK
    """IPv4 address of this machine's server."""

    def to_argument(self) -> str:
        """Returns the value as one command-line argument."""
        return json.dumps(asdict(self))

    @classmethod
    def from_argument(cls, argument: str) -> "SitePlace":
        """Reads what `to_argument` wrote."""
        return cls(**json.loads(argument))


def shared_memory_prefix(run_id: str) -> str:
    """Returns what the names of all shared memory of a run begin with, for `Job.shared_memory_prefixes`."""
    return f"geokfp-{run_id}-"


def site_roles(
    site: SitePartitions,
    *,
    trainer: str,
    arguments: Sequence[str],
    work: Path,
    run_id: str,
    num_samplers: int = 0,
) -> tuple[Role, Role]:
    """Plans the servers and trainers of one site on this host.

    Args:
        site: the site's partitions.
        trainer: `package.module:function` that each trainer runs, called with the list
            `[place, *arguments]`; it gives `place` to `site_view.open_site`.
        arguments: further arguments of all trainers.
        work: folder for the site's address file; made when missing.
        run_id: distinguishes runs, and is part of the names of shared memory.
        num_samplers: sampler processes of each trainer.

    Returns:
        The role of the servers, which do not finish by themselves, and that of the trainers: replica i of
        either is named `<graph_name>/server-i` and `<graph_name>/trainer-i` and stands beside part i.
    """
    work.mkdir(parents=True, exist_ok=True)
    addresses = [(LOOPBACK, port) for port in free_ports(site.num_parts)]
    ip_config = _write_addresses(work, site, addresses)
    places = [
        _place(site, machine, ip_config, run_id=run_id, num_samplers=num_samplers)
        for machine in range(site.num_parts)
    ]
    return _roles(site, places, trainer, arguments, CONNECT_TRIES)


def machine_roles(
    site: SitePartitions,
    pod: PodPlace,
    *,
    trainer: str,
    arguments: Sequence[str],
    work: Path,
    num_samplers: int = 0,
) -> tuple[Role, Role]:
    """Plans the server and the trainer of one machine of a site: of pod i, which stands beside part i.

    Each time that they are started again they have another port and shared memory of their own: in other pods
    earlier ones may live a moment longer.

    Args:
        site: the site's partitions; the pods of `pod.group` are its machines, in order.
        pod: where this pod stands.
        trainer: as `site_roles` takes it.
        arguments: further arguments of the trainer.
        work: folder for the site's address file; made when missing.
        num_samplers: sampler processes of the trainer.

    Returns:
        The role of the server and that of the trainer. The server finishes too: it ends when all trainers of
        the site have, which it serves until then.
    """
    work.mkdir(parents=True, exist_ok=True)
    addresses = [(address, DGL_PORT + pod.restart) for address in pod.addresses[pod.group]]
    ip_config = _write_addresses(work, site, addresses)
    place = _place(site, pod.index, ip_config, run_id=pod_run_id(pod), num_samplers=num_samplers)
    own = replace(place, address=pod.address)
    server, client = _roles(site, [own], trainer, arguments, POD_CONNECT_TRIES)
    return replace(server, finishes=True), client


def pod_run_id(pod: PodPlace) -> str:
    """Returns what tells a pod's shared memory from that of others, where processes stand for pods."""
    own = hashlib.sha256(pod.hosts[pod.group][pod.index].encode()).hexdigest()[:8]
    return f"{own}-{pod.restart}" if pod.restart else own


def _write_addresses(work: Path, site: SitePartitions, addresses: Sequence[tuple[str, int]]) -> str:
    path = work / f"{site.graph_name}.addresses"
    path.write_text("".join(f"{address} {port}\n" for address, port in addresses), encoding="ascii")
    return str(path)


def _place(
    site: SitePartitions, machine: int, ip_config: str, *, run_id: str, num_samplers: int
) -> SitePlace:
    return SitePlace(
        site=site.name,
        machine=machine,
        num_machines=site.num_parts,
        shared_memory_prefix=f"{shared_memory_prefix(run_id)}{site.graph_name}-m{machine}.",
        ip_config=ip_config,
        graph_name=site.graph_name,
        num_samplers=num_samplers,
    )


def _roles(
    site: SitePartitions,
    places: Sequence[SitePlace],
    trainer: str,
    arguments: Sequence[str],
    connect_tries: int,
) -> tuple[Role, Role]:
    group = site.graph_name  # a site's own name may hold anything

    def replica(role: str, place: SitePlace, further: Sequence[str], **environment: str) -> Replica:
        return Replica(
            name=f"{group}/{role}-{place.machine}",
            environment={**_environment(site, place, connect_tries), **environment},
            arguments=(place.to_argument(), *further),
        )

    servers = tuple(
        replica("server", place, (), DGL_ROLE="server", DGL_SERVER_ID=str(place.machine)) for place in places
    )
    trainers = tuple(
        replica("trainer", place, arguments, DGL_ROLE="client", DGL_DIST_MODE="distributed")
        for place in places
    )
    return (
        Role(name=f"{group}/server", target=SERVER, replicas=servers, preload=PRELOAD, finishes=False),
        Role(name=f"{group}/trainer", target=trainer, replicas=trainers, preload=PRELOAD),
    )


def _environment(site: SitePartitions, place: SitePlace, connect_tries: int) -> dict[str, str]:
    return {
        "DGL_NUM_SERVER": "1",
        "DGL_NUM_SAMPLER": str(place.num_samplers),
        "DGL_NUM_CLIENT": str(place.num_machines * (1 + place.num_samplers)),
        "DGL_CONF_PATH": str(site.config_path),
        "DGL_IP_CONFIG": place.ip_config,
        "DGL_GRAPH_FORMAT": "csc",
        "DGL_DIST_MAX_TRY_TIMES": str(connect_tries),
        "OMP_NUM_THREADS": "1",
        **({} if place.address == LOOPBACK else {"GLOO_SOCKET_IFNAME": interface_of(place.address)}),
    }
