"""One process that trains on the batches of all workers, joined: how accurate they could become together."""

from functools import partial

from ..processes import Process
from ..worker_job import JOINED, Exchange
from .base import Setting, System, worker_at


def _plan(framework: str, setting: Setting) -> tuple[Process, ...]:
    num_workers = len(setting.sites) * setting.workers
    exchange = Exchange(framework=framework, name=JOINED, num_workers=num_workers)
    return (worker_at(setting, 0, 0, exchange, {}),)


ONE_GLUON = System(
    says="one process on the joined batches of all workers",
    plan=partial(_plan, "gluon"),
    shaped=False,
    one_process=True,
)
ONE_TORCH = System(says="the same with torch", plan=partial(_plan, "torch"), shaped=False, one_process=True)
