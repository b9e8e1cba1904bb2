"""Torch's own DistributedDataParallel over gloo: every worker a rank at its site, no server."""

from ..processes import Process
from ..shaping import DEVICE
from ..worker_job import DDP, Exchange
from .base import Setting, System, worker_at

_PORT = 9300


def _plan(setting: Setting) -> tuple[Process, ...]:
    """All workers at their sites; the first of them holds the store through which they meet."""
    num_workers = len(setting.sites) * setting.workers
    exchange = Exchange(framework="torch", name=DDP, num_workers=num_workers)
    group = {
        "MASTER_ADDR": setting.addresses[setting.sites[0]],
        "MASTER_PORT": str(_PORT),
        "WORLD_SIZE": str(num_workers),
        "GLOO_SOCKET_IFNAME": DEVICE,
    }
    return tuple(
        worker_at(setting, site, worker, exchange, {**group, "RANK": str(site * setting.workers + worker)})
        for site in range(len(setting.sites))
        for worker in range(setting.workers)
    )


TORCH_DDP = System(says="torch's DistributedDataParallel over gloo, Adam on the workers", plan=_plan)
TORCH_DDP_LAN = System(says="the same over links without limits", plan=_plan, shaped=False)
