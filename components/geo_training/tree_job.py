"""What every process of one tree is given: who is in it, where, and how it works together. A JSON file.

Knows nothing of models, nor of how the processes run.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from .._files import ArtifactError, InputError, new_file
from .._files.checkpoints import digest, last_common
from .choices import check_choices, written_compression
from .compression import compression
from .metrics.ports import check_pages
from .nodes.shards import Shard, shards_of
from .scheduling import Slices, transmission
from .scheduling.relay import TsEngine
from .security import check_security
from .synchronization import synchronization
from .topology import ROOT, Topology, read
from .transport.base import Address, Traffic
from .transport.sealing import check_secret
from .wire.units import FLOAT_BYTES

KEYS = (
    "run_id",
    "workers",
    "topology",
    "synchronization",
    "compression",
    "transmission",
    "certificates",
    "plain_text",
    "round_timeout_s",
    "silence_s",
    "reconnect_s",
    "checkpoint_folder",
    "checkpoint_every",
    "resume",
    "keeps_answers",
    "answers_workers",
    "comes_back",
    "metrics_folder",
    "metrics_host",
    "metrics_port",
)


@dataclass(frozen=True, kw_only=True, slots=True)
class TreeJob:
    """What every process of a tree is given.

    Raises:
        InputError: a synchronisation, compression or transmission that is not allowed, or not with so many
            workers; an address beyond this machine without certificates.
    """

    run_id: str
    """The run; nodes of another refuse it."""
    workers: Mapping[str, int]
    """Number of workers by site."""
    topology: Topology
    """Who listens where."""
    synchronization: str = "fsa"
    """How the sites keep in step."""
    compression: str = "none"
    """How values travel between sites."""
    transmission: str = "fifo"
    """In which pieces and in what order they do."""
    certificates: str = ""
    """Folder with each node's certificate, key and authority; see `transport/certificates.py`."""
    plain_text: bool = False
    """Whether links that leave this machine may go without TLS."""
    round_timeout_s: float = 300.0
    """Seconds that a round waits for its last worker."""
    silence_s: float = 5.0
    """Seconds without a word, of which there are four meanwhile, after which a node or worker is dead."""
    reconnect_s: float = 90.0
    """Seconds that a lost node or worker is tried, and has to come back where it is waited for."""
    checkpoint_folder: str = ""
    """Folder where nodes keep their state; empty keeps none."""
    checkpoint_every: int = 0
    """Rounds between two checkpoints that the root keeps by itself, and goes on from when it is started
    again; 0 for those that workers ask every node for."""
    resume: int = 0
    """With `checkpoint_every` 0: the checkpoint that every process goes on from; 0 begins afresh."""
    keeps_answers: bool = False
    """Whether the root keeps what it answers since the last checkpoints that workers asked for: a whole site
    can be started again from them while the others wait."""
    answers_workers: bool = False
    """Whether sites' nodes keep what they answer, in the same way: one worker can be started again alone."""
    comes_back: Literal["", "site", "worker"] = ""
    """Who comes in the place of earlier processes, of those that are given this: all of a `site`, or one
    `worker` whose site's node has lived on; empty at the start of all."""
    metrics_folder: str = ""
    """Folder where every process leaves what it measured, and where it can be scraped; empty for none."""
    metrics_host: str = "127.0.0.1"
    """Where the processes' pages for Prometheus listen."""
    metrics_port: int = 0
    """Port of the root's page; those of sites, then of workers, have the next ones, in order. 0 for none."""

    def __post_init__(self) -> None:
        """Checks the values."""
        chosen = synchronization(self.synchronization)
        chosen.check_workers(len(self.topology.workers))
        object.__setattr__(self, "compression", written_compression(chosen, self.compression))
        sent = transmission(self.transmission)
        check_choices(chosen, compression(self.compression), sent, len(self.topology.accepting))
        if "dgt" in sent.rules and self.certificates:
            check_secret()
        roots = shards_of(self.topology, sent.multigps)
        addresses = {
            *self.topology.addresses,
            *self.topology.binds.values(),
            *(root.address for root in roots),
        }
        check_security(self.certificates, self.plain_text, sorted(addresses, key=str))
        for option in ("round_timeout_s", "silence_s", "reconnect_s"):
            _check_seconds(option, getattr(self, option))
        self._check_checkpoints(weights_at_root=chosen.weights_at_root)
        check_pages(self.metrics_host, self.metrics_port, len(self.members))

    def _check_checkpoints(self, *, weights_at_root: bool) -> None:
        every = f"checkpoint_every is {self.checkpoint_every!r}, allowed"
        if self.checkpoint_every < 0 or (self.checkpoint_every and not self.checkpoint_folder):
            raise InputError(f"{every}: 1 or more with a checkpoint_folder, else 0")
        if self.checkpoint_every and not weights_at_root:
            raise InputError(
                f"{every} with synchronization {self.synchronization!r}: 0, as the root does not have the "
                "weights; with its optimizer, as in fsa(optimizer=adam), 1 or more"
            )
        if self.checkpoint_every and len(self.roots) > 1:
            raise InputError(f"{every} with multigps: 0, as one root alone cannot go on without the others")
        if self.checkpoint_every and self.relays is not None:
            raise InputError(
                f"{every} with tsengine: 0, as the sites have plans that a new root does not know"
            )

    @property
    def slices(self) -> Slices:
        """How large tensors are cut, the same on each worker, where nothing is measured (`pace`)."""
        return self.slices_of(compression(self.compression).slice_bytes)

    def slices_of(self, slice_bytes: int) -> Slices:
        """Returns how large tensors are cut, into slices of so many bytes of values."""
        least = compression(self.compression).least_values * FLOAT_BYTES
        return transmission(self.transmission).slices(slice_bytes, least)

    @property
    def roots(self) -> tuple[Shard, ...]:
        """The roots, one but with `multigps`; the first one first."""
        return shards_of(self.topology, transmission(self.transmission).multigps)

    def root(self, node: str) -> Shard | None:
        """Returns the root of that name, None where it is none."""
        return next((root for root in self.roots if root.name == node), None)

    def children(self, node: str) -> tuple[str, ...]:
        """Returns the nodes that dial `node`."""
        return self.topology.children(ROOT if self.root(node) is not None else node)

    def address(self, node: str) -> Address:
        """Returns where a node is reached."""
        root = self.root(node)
        return self.topology.address(node) if root is None else root.address

    def bound(self, node: str) -> Address:
        """Returns where a node listens."""
        root = self.root(node)
        return self.topology.bound(self.topology.address(node)) if root is None else root.binds

    def far_roots(self, site: str) -> tuple[str, ...]:
        """Returns the roots that a site's node reaches over the link between sites."""
        return tuple(root.name for root in self.roots if root.site != site)

    @property
    def is_overlapped(self) -> bool:
        """Whether a worker's passes are to go on while it sends and awaits, where its framework can."""
        return transmission(self.transmission).overlaps

    @property
    def relays(self) -> TsEngine | None:
        """How sites relay for each other; None where they do not."""
        relays: TsEngine | None = transmission(self.transmission).rules.get("tsengine")
        return relays

    @property
    def why_no_site_comes_back(self) -> str:
        """Why no whole site can be started again beside the others; empty where it can."""
        rules = transmission(self.transmission).rules
        reasons = {
            "multigps": "a site's root would be lost with it",
            "tsengine": "what went by the site would be lost",
            "dgt": "which blocks came is not repeated",
        }
        return next((f"{reason}, with {rule}" for rule, reason in reasons.items() if rule in rules), "")

    def coming_back(self, site: str, worker: str = "") -> "TreeJob":
        """Returns what those are given that are started again now: from the last checkpoint that all have.

        Args:
            site: the site.
            worker: of it, where it comes back alone; empty for all of the site.
        """
        names = (worker,) if worker else (site, *self.topology.site(site).workers)
        resume = last_common(Path(self.checkpoint_folder), [self.member(name) for name in names])
        return replace(self, resume=resume, comes_back="worker" if worker else "site")

    @property
    def digest(self) -> str:
        """What tells trees apart that must not go on from each other's checkpoints."""
        chosen = ("workers", "synchronization", "compression", "transmission")
        options = {key: getattr(self, key) for key in chosen}
        return digest(options, None, {})

    def of_roots(self, site: str, traffic: Mapping[str, Traffic]) -> Traffic:
        """Returns the bytes between a site and roots elsewhere, of those on all links of its node.

        With them those that it sent to other sites; what came from these, they count.
        """
        total = Traffic()
        for root in self.far_roots(site):
            total.add(traffic[root])
        for other in self.topology.sites:
            if other.name in traffic:
                total.add(Traffic(sent_bytes=traffic[other.name].sent_bytes))
        return total

    def member(self, name: str) -> str:
        """Returns the name under which a process keeps its checkpoints: names of sites may hold anything."""
        if self.root(name) is not None:
            return name
        names = [site.name for site in self.topology.sites]
        if name in names:
            return f"node-{names.index(name)}"
        return f"worker-{self.topology.workers.index(name)}"

    @property
    def members(self) -> list[str]:
        """The names under which all processes keep their checkpoints."""
        nodes, roots = [site.name for site in self.topology.sites], [root.name for root in self.roots]
        return [self.member(name) for name in (*roots, *nodes, *self.topology.workers)]

    def to_dict(self) -> dict[str, Any]:
        """Returns the form that `from_dict` reads."""
        document = {key: getattr(self, key) for key in KEYS}
        return {**document, "workers": dict(self.workers), "topology": self.topology.to_dict()}

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> "TreeJob":
        """Reads what `to_dict` gave."""
        topology = read(document["topology"], document["workers"], free_ports=())
        return cls(**{**document, "topology": topology})

    def write(self, path: Path) -> Path:
        """Writes the job and returns its path."""
        with new_file(path) as temporary:
            temporary.write_text(json.dumps(self.to_dict(), indent=1), encoding="utf-8")
        return path

    @classmethod
    def read(cls, path: Path) -> "TreeJob":
        """Reads what `write` wrote.

        Raises:
            ArtifactError: it is not what `write` writes.
        """
        try:
            document = json.loads(path.read_text(encoding="utf-8"))
            if set(document) != set(KEYS):
                raise KeyError(f"it has {sorted(document)}, {sorted(KEYS)} are needed")
            return cls.from_dict(document)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ArtifactError(f"{path}: not a tree's job ({error})") from error


def _check_seconds(option: str, value: object) -> None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not (is_number and 0 < value < math.inf):  # type: ignore[operator]
        raise InputError(f"{option} is {value!r}, allowed: a number above 0")
