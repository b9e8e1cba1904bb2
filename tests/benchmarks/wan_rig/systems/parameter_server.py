"""MXNet's own parameter server, and the control: the same server, one for each site alone."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from ..links import ROOT
from ..processes import Process
from ..worker_job import Exchange
from .base import PYTHON_ENVIRONMENT, Setting, System, worker_at

_PORT = 9091
_LOOPBACK = "127.0.0.1"


@dataclass(frozen=True, kw_only=True, slots=True)
class _Variant:
    """What sets one of MXNet's ways apart."""

    compression: Mapping[str, Any] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)


def _over_all_sites(variant: _Variant, setting: Setting) -> tuple[Process, ...]:
    """Scheduler and server at the root, all workers at their sites."""
    num_workers = len(setting.sites) * setting.workers
    exchange = Exchange(name="dist_sync", compression=variant.compression, num_workers=num_workers)
    group = {**_group(setting.addresses[ROOT], num_workers), **variant.environment}
    servers = _servers(ROOT, ROOT, {**group, "DMLC_NODE_HOST": setting.addresses[ROOT]})
    workers = [
        worker_at(setting, site, worker, exchange, {**group, **_as_worker(setting.addresses[name])})
        for site, name in enumerate(setting.sites)
        for worker in range(setting.workers)
    ]
    return (*servers, *workers)


def _each_site_alone(setting: Setting) -> tuple[Process, ...]:
    """Scheduler, server and workers at every site, which never leave it."""
    exchange = Exchange(name="dist_sync", num_workers=setting.workers)
    group = _group(_LOOPBACK, setting.workers)
    planned: list[Process] = []
    for site, name in enumerate(setting.sites):
        planned += _servers(name, name, {**group, "DMLC_NODE_HOST": _LOOPBACK})
        for worker in range(setting.workers):
            planned.append(worker_at(setting, site, worker, exchange, {**group, **_as_worker(_LOOPBACK)}))
    return tuple(planned)


def _group(address: str, num_workers: int) -> dict[str, str]:
    return {
        "DMLC_PS_ROOT_URI": address,
        "DMLC_PS_ROOT_PORT": str(_PORT),
        "DMLC_NUM_SERVER": "1",
        "DMLC_NUM_WORKER": str(num_workers),
    }


def _as_worker(address: str) -> dict[str, str]:
    return {"DMLC_ROLE": "worker", "DMLC_NODE_HOST": address}


def _servers(label: str, endpoint: str, environment: Mapping[str, str]) -> list[Process]:
    """Returns scheduler and server: importing MXNet in these roles serves until the workers are done."""
    return [
        Process(
            name=f"{label}-{role}",
            endpoint=endpoint,
            command=(sys.executable, "-c", "import mxnet"),
            environment={**PYTHON_ENVIRONMENT, **environment, "DMLC_ROLE": role},
        )
        for role in ("scheduler", "server")
    ]


MXNET = System(
    says="MXNet dist_sync: one server at the root, Adam on it",
    plan=partial(_over_all_sites, _Variant()),
)
MXNET_2BIT = System(
    says="the same with gradients sent as 2 bits a number (threshold 0.5, MXNet's default)",
    plan=partial(_over_all_sites, _Variant(compression={"type": "2bit", "threshold": 0.5})),
)
MXNET_P3 = System(
    says="the same with MXNet's P3: slices by priority; Adam on the workers, as P3 has none on the server",
    plan=partial(_over_all_sites, _Variant(environment={"DMLC_PS_VAN_TYPE": "p3"})),
)
MXNET_LAN = System(says="MXNet dist_sync over links without limits", plan=MXNET.plan, shaped=False)
ALONE = System(
    says="each site alone: no wide-area traffic; the best site counts",
    plan=_each_site_alone,
    shaped=False,
    judged=max,
)
