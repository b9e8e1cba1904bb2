"""Ours: MXNet's Trainer or a loop of torch over a tree of aggregators, one at the root and at each site."""

import sys
import uuid
from dataclasses import dataclass, replace
from functools import partial

from geokfp.components.geo_training.topology import Site, Topology
from geokfp.components.geo_training.transport.base import Address
from geokfp.components.geo_training.tree_job import TreeJob

from ..links import ROOT
from ..processes import Process
from ..worker_job import TREE, Exchange
from .base import PYTHON_ENVIRONMENT, Setting, System, worker_at

_ROOT_PORT, _SITE_PORT, _ACCEPT_PORT = 9200, 9201, 9301
_EXCHANGES = {
    "gluon": partial(Exchange, name=TREE, plugin="geokfp.components.geo_training.frameworks.mxnet_store"),
    "torch": partial(Exchange, name=TREE, framework="torch"),
}
"""By framework."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Stack:
    """What sets one of ours apart."""

    synchronization: str = "fsa"
    compression: str = "none"
    transmission: str = "fifo"
    hierarchy: bool = True


def _plan(stack: _Stack, setting: Setting, framework: str = "gluon") -> tuple[Process, ...]:
    job = _job(stack, setting)
    path = str(job.write(setting.folder / "tree.json"))
    num_workers, one_node = len(job.topology.workers), stack.hierarchy or setting.workers == 1
    exchange = _EXCHANGES[framework](num_workers=num_workers, counts=one_node)
    nodes = [_node(root.name, (root.site or ROOT).partition(".")[0], path) for root in job.roots]
    workers = []
    for number, endpoint in enumerate(setting.sites):
        sites = [site for site in job.topology.sites if site.name.partition(".")[0] == endpoint]
        nodes += [_node(site.name, endpoint, path) for site in sites]
        names = [name for site in sites for name in site.workers]
        for worker, name in enumerate(names):
            place = {"GEOKFP_TREE": path, "GEOKFP_WORKER": name}
            workers.append(worker_at(setting, number, worker, exchange, place))
    return (*nodes, *workers)


def _job(stack: _Stack, setting: Setting) -> TreeJob:
    """Plans the tree; without hierarchy every worker has a node of its own, which dials the root."""
    sites = []
    for endpoint in setting.sites:
        if stack.hierarchy:
            sites.append((endpoint, endpoint, setting.workers))
        else:
            sites += [(f"{endpoint}.{number}", endpoint, 1) for number in range(setting.workers)]
    topology = Topology(
        Address(setting.addresses[ROOT], _ROOT_PORT),
        tuple(
            Site(
                name,
                workers,
                Address(setting.addresses[endpoint], _SITE_PORT + number),
                Address(setting.addresses[endpoint], _ACCEPT_PORT + number),
            )
            for number, (name, endpoint, workers) in enumerate(sites)
        ),
    )
    return TreeJob(
        run_id=uuid.uuid4().hex[:8],
        workers={name: workers for name, _, workers in sites},
        topology=topology,
        synchronization=stack.synchronization.format(learning_rate=setting.learning_rate),
        compression=stack.compression,
        transmission=stack.transmission,
        plain_text=True,
    )


def _node(name: str, endpoint: str, path: str) -> Process:
    return Process(
        name=f"{name}-node",
        endpoint=endpoint,
        command=(sys.executable, "-m", "geokfp.components.geo_training.server", name, path),
        environment=PYTHON_ENVIRONMENT,
    )


def _system(says: str, *, shaped: bool = True, **stack: object) -> System:
    return System(says=says, plan=partial(_plan, _Stack(**stack)), shaped=shaped)  # type: ignore[arg-type]


_MIXED = "mixed(optimizer=adam(rate={learning_rate:g}))"
_TWO_BITS = "quantized(bits=2) + zstd"
_BEST = {
    "synchronization": "hfa(k1=10, k2=2) + outer(rate=1.3, momentum=0)",
    "compression": "top_k(ratio=0.3, bits=2) + zstd",
}

OURS = {
    "flat": _system(
        "full synchronisation, every worker at the root: isolates the framework", hierarchy=False
    ),
    "fsa": _system("full synchronisation over the tree (HiPS)"),
    "p3": _system("the same, first layers first, sent while it computes", transmission="p3"),
    "multigps": _system("the same, by two roots, one at a site", transmission="fifo + multigps(shards=2)"),
    "mixed": _system("no site waits for another; Adam at the root", synchronization=_MIXED),
    "hfa": _system(
        "10 local steps, then the mean at the site; after 3 of these over all sites",
        synchronization="hfa(k1=10, k2=3)",
    ),
    "hfa_20": _system("20 local steps, then the mean over all sites", synchronization="hfa(k1=20)"),
    "esync": _system("local steps by measured times", synchronization="esync(steps=20)"),
    "nbsync": _system("20 local steps, not waiting for the mean", synchronization="nbsync(steps=20)"),
    "dgt": _system(
        "full synchronisation, a fifth of each push by TCP", transmission="fifo + dgt(fraction=0.2)"
    ),
    "fp16": _system("full synchronisation in FP16", compression="fp16"),
    "mpq": _system("full synchronisation, sparse where large, else FP16", compression="mpq(bound=10000)"),
    "bisparse": _system(
        "full synchronisation, 2 % both ways in 4 bits, without momentum",
        compression="bi_sparse(ratio=0.02, bits=4, momentum=0)",
    ),
    "geomx": _system("GeoMX's stack: HiPS and 1 % both ways", compression="bi_sparse(ratio=0.01)"),
    "tsengine": _system(
        "full synchronisation, sites relay for each other", transmission="fifo + tsengine(explore=0.1)"
    ),
    "tsengine_best": _system(
        "the best of ours, sites relay for each other", **_BEST, transmission="fifo + tsengine(explore=0.1)"
    ),
    "best": _system("the best of ours", **_BEST),
    "best_often": _system(
        "the same, all sites every 5 steps: for sites that differ",
        synchronization="hfa(k1=5)",
        compression=_TWO_BITS,
    ),
    "auto": _system(
        "as often and in as few bytes as the links allow", synchronization="auto", compression="auto"
    ),
    "best_lan": _system("the same over links without limits", shaped=False, **_BEST),
}
"""With gluon."""


def _with_torch(system: System) -> System:
    plan = partial(system.plan, framework="torch")
    return replace(system, says=f"{system.says}; with torch", plan=plan)


TORCH_OURS = {f"torch_{name}": _with_torch(system) for name, system in OURS.items()}
