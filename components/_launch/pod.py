"""What a pod of a launch runs: `python3 -m geokfp.components._launch.pod`.

It learns from its environment who it is and who the others are, waits until all their names resolve, calls
its target for the processes to run, runs them under the one supervisor, and hands over what came out::

    environment -> names resolve -> target(place, document) -> run_job(work.job) -> work.finish()

It ends itself as failed when nobody beats in the hand-over for `orphan_timeout_s`: a launcher that was
killed deletes nothing. Why it failed is its last line, and lies in the hand-over (`failures/`). Knows
nothing of training, nor of Kubernetes.
"""

import importlib
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

from .._files import InputError
from .environment import PodVariables, has_nothing_to_do, pod_variables
from .errors import ProcessFailed
from .failure import FailureRecord, from_json, record_of, to_json
from .hand_over import HandOver
from .launch_options import LaunchOptions
from .local import run_job
from .names import resolve
from .plan import Job
from .restarts import Restarting

STOP_S = 15.0
"""Seconds that a pod which ends itself gets to end its processes, before it leaves them to the kernel."""
FAILURES = "failures"
"""Folder of the hand-over in which pods leave why they failed."""
LISTENS_S = 10.0
"""Most seconds between two looks at the beat."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PodPlace:
    """Who a pod is, and who the others are."""

    group: str
    """Name of its group."""
    index: int
    """Its number in the group."""
    hosts: Mapping[str, tuple[str, ...]]
    """DNS names of each group's pods, in order."""
    addresses: Mapping[str, tuple[str, ...]]
    """IPv4 addresses of the same."""
    restart: int = 0
    """How often the processes of its group have been started again, in the same pods."""

    @property
    def address(self) -> str:
        """IPv4 address of this pod."""
        return self.addresses[self.group][self.index]

    @property
    def name(self) -> str:
        """Group and number, such as `worker-1`."""
        return f"{self.group}-{self.index}"


@dataclass(frozen=True, kw_only=True, slots=True)
class PodWork:
    """What a target returns: the pod's processes, and what to do when they have ended well."""

    job: Job
    """The processes; those that others still need must be of roles that finish."""
    log_folder: Path
    """Where their logs go."""
    finish: Callable[[], None]
    """Hands over what came out; called once, when the job has ended well."""
    restarting: Restarting | None = None
    """Plans processes anew that are started again when they are killed; None ends the pod then."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PodOrders:
    """What every pod's document says, whatever its target is."""

    step: str
    """The component, such as `train_gnn`."""
    hand_over: str
    """URI of the launch's hand-over, as the pod reaches it."""
    start_timeout_s: float
    """Seconds that the names of all pods have to resolve."""
    orphan_timeout_s: float
    """Seconds without a beat after which the pod ends itself."""

    @classmethod
    def of(cls, options: LaunchOptions, *, step: str, hand_over: str) -> "PodOrders":
        """Returns what a step's options say to its pods."""
        return cls(
            step=step,
            hand_over=hand_over,
            start_timeout_s=options.start_timeout_s,
            orphan_timeout_s=options.orphan_timeout_s,
        )

    def document(self, body: Mapping[str, Any]) -> str:
        """Returns a group's document: these orders, and what its target needs beside them."""
        return json.dumps({"orders": asdict(self), **body}, separators=(",", ":"))


def orders_of(document: str) -> PodOrders:
    """Returns the orders of what `PodOrders.document` wrote."""
    return PodOrders(**json.loads(document)["orders"])


def forget_failures_of_pods(hand_over: HandOver) -> None:
    """Removes why pods failed: those of an earlier try tell nothing of this one."""
    hand_over.inside(FAILURES).remove()


def read_failures_of_pods(hand_over: HandOver, pods: Mapping[str, int]) -> list[FailureRecord]:
    """Returns why pods failed, by what they left; replicas are named with their pod, `worker/1/trainer-0`.

    Args:
        hand_over: the launch's.
        pods: number of pods of each group.
    """
    found = []
    for group, count in pods.items():
        for index in range(count):
            name = _failure_name(f"{group}-{index}")
            if (text := hand_over.get_text(name)) is not None:
                found.append(from_json(text, f"{hand_over.uri}/{name}"))
    return found


def run_pod(variables: PodVariables) -> None:
    """Does all that a pod does; its failure is left in the hand-over.

    Raises:
        SystemExit: it was told to end (SIGTERM), or nobody beats any more.
        Exception: whatever went wrong.
    """
    orders = orders_of(variables.document)
    hand_over = HandOver(orders.hand_over)
    name = f"{variables.group}-{variables.index}"
    watch = _OrphanWatch(orders, hand_over, name)
    watch.start()
    try:
        addresses = resolve(variables.hosts, variables.addresses, timeout_s=orders.start_timeout_s)
        place = PodPlace(
            group=variables.group, index=variables.index, hosts=variables.hosts, addresses=addresses
        )
        work: PodWork = _function(variables.target)(place, variables.document)
        run_job(work.job, log_folder=work.log_folder, restarting=work.restarting)
        work.finish()
    except Exception as error:
        if not watch.orphaned:
            _leave_failure(hand_over, name, record_of(orders.step, error))
        raise
    finally:
        watch.stop()


class _OrphanWatch(threading.Thread):
    """Ends this process, as if by SIGTERM, when nobody beats any more."""

    def __init__(self, orders: PodOrders, hand_over: HandOver, name: str) -> None:
        super().__init__(name="orphan-watch", daemon=True)
        self.orphaned = False
        self._orders = orders
        self._hand_over = hand_over
        self._pod = name
        self._done = threading.Event()

    def stop(self) -> None:
        """Ends the watch."""
        self._done.set()

    def run(self) -> None:
        """Listens until the pod is done or nobody beats."""
        limit_s = self._orders.orphan_timeout_s
        while not self._done.wait(min(limit_s / 4, LISTENS_S)):
            if self._hand_over.silent_for_s() > limit_s:
                self._end(f"nobody has beaten in {self._hand_over.uri} for {limit_s:g} s (orphan_timeout_s)")

    def _end(self, cause: str) -> NoReturn:
        self.orphaned = True
        _tell(self._pod, cause)
        _leave_failure(
            self._hand_over, self._pod, FailureRecord(step=self._orders.step, replica="", cause=cause)
        )
        os.kill(os.getpid(), signal.SIGTERM)
        self._done.wait(STOP_S)
        os._exit(1)


def _leave_failure(hand_over: HandOver, name: str, record: FailureRecord) -> None:
    pod = "/".join(name.rsplit("-", 1))
    replica = f"{pod}/{record.replica}" if record.replica else pod
    whole = FailureRecord(step=record.step, replica=replica, cause=record.cause, last_lines=record.last_lines)
    try:
        hand_over.put_text(_failure_name(name), to_json(whole))
    except InputError as error:
        _tell(name, str(error))


def _failure_name(name: str) -> str:
    return f"{FAILURES}/{name}.json"


def _function(target: str) -> Callable[[PodPlace, str], PodWork]:
    module, _, function = target.partition(":")
    return getattr(importlib.import_module(module), function)  # type: ignore[no-any-return]


def _tell(name: str, cause: str) -> None:
    sys.stderr.write(f"pod {name} failed: {' '.join(cause.split())}\n")
    sys.stderr.flush()


def _terminate(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
    # Process 1 of a container has no default action.
    raise SystemExit(128 + number)


def main() -> int:
    """Runs this pod and returns its exit status."""
    if has_nothing_to_do():
        return 0
    signal.signal(signal.SIGTERM, _terminate)
    began_s = time.monotonic()
    variables = pod_variables()
    name = f"{variables.group}-{variables.index}"
    try:
        run_pod(variables)
    except Exception as error:  # noqa: BLE001
        record = record_of("", error)
        for line in record.last_lines:
            sys.stderr.write(f"{line}\n")
        replica = f"{record.replica}: " if isinstance(error, ProcessFailed) else ""
        _tell(name, f"{replica}{record.cause}")
        return 1
    sys.stdout.write(f"pod {name} is done after {time.monotonic() - began_s:.1f} s\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
