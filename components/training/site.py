"""The processes of one site: a DGL server and a trainer beside each of its parts.

`site_roles` is called where the job is planned and imports neither torch nor DGL. What a process must
know of its place travels as its first argument, `SitePlace`; DGL's own settings travel as its
environment.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from .._launch import Replica, Role, free_ports
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

CONNECT_TRIES = 3000
"""Attempts of 0.1 s to reach a server or client before DGL gives up."""


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
    group = site.graph_name  # a site's own name may hold anything
    ip_config = work / f"{group}.addresses"
    ports = free_ports(site.num_parts)
    ip_config.write_text("".join(f"127.0.0.1 {port}\n" for port in ports), encoding="ascii")
    places = [
        SitePlace(
            site=site.name,
            machine=machine,
            num_machines=site.num_parts,
            shared_memory_prefix=f"{shared_memory_prefix(run_id)}{site.graph_name}-m{machine}.",
            ip_config=str(ip_config),
            graph_name=site.graph_name,
            num_samplers=num_samplers,
        )
        for machine in range(site.num_parts)
    ]
    servers = [
        Replica(
            name=f"{group}/server-{place.machine}",
            environment={
                **_environment(site, place),
                "DGL_ROLE": "server",
                "DGL_SERVER_ID": str(place.machine),
            },
            arguments=(place.to_argument(),),
        )
        for place in places
    ]
    trainers = [
        Replica(
            name=f"{group}/trainer-{place.machine}",
            environment={
                **_environment(site, place),
                "DGL_ROLE": "client",
                "DGL_DIST_MODE": "distributed",
            },
            arguments=(place.to_argument(), *arguments),
        )
        for place in places
    ]
    serve = "geokfp.components.training.server:main"
    return (
        Role(
            name=f"{group}/server",
            target=serve,
            replicas=tuple(servers),
            preload=PRELOAD,
            finishes=False,
        ),
        Role(name=f"{group}/trainer", target=trainer, replicas=tuple(trainers), preload=PRELOAD),
    )


def _environment(site: SitePartitions, place: SitePlace) -> dict[str, str]:
    return {
        "DGL_NUM_SERVER": "1",
        "DGL_NUM_SAMPLER": str(place.num_samplers),
        "DGL_NUM_CLIENT": str(place.num_machines * (1 + place.num_samplers)),
        "DGL_CONF_PATH": str(site.config_path),
        "DGL_IP_CONFIG": place.ip_config,
        "DGL_GRAPH_FORMAT": "csc",
        "DGL_DIST_MAX_TRY_TIMES": str(CONNECT_TRIES),
        "OMP_NUM_THREADS": "1",
    }
