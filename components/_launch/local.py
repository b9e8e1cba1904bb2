"""THE supervisor: runs a job's processes on this machine or in this pod, and ends all when one fails.

Knows nothing of what the processes do, of Kubernetes, or of KFP. Who kills what::

    this process ── pipe ── fork host ── replica (own session) ── what it starts
      fails, Ctrl-C, SIGTERM   closes the pipe; then kills what still carries the job's mark
      SIGKILL                  the fork host sees the pipe's end, and kills all
      fork host is killed      the kernel kills the replicas, this process all else
      replica ends             the fork host kills its group and tells; the first bad end ends the job, or
                               its unit, which is started again (`restarts`)
"""

import contextlib
import json
import selectors
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import FrameType
from typing import IO, Any

from .environment import inherited
from .errors import ProcessFailed, Terminated
from .log_reader import LogReader
from .marked import kill_marked
from .plan import Job, Role
from .progress import print_progress, progress
from .restarts import MOST, Restarting, Restarts, Step
from .shared_memory import remove_shared_memory
from .verdict import BadEnd, describe, root_cause

FORK_HOST = "fork-host"
"""Name under which the process that the replicas are forked from appears in errors."""

OTHERS_S = 0.5
"""Seconds in which the cause of an end that another's end would explain may still come in."""
SERVERS_S = 2.0
"""Seconds that roles which do not finish get to end by themselves at the end of the job."""
STOP_S = 3.0
"""Seconds that the fork host gets to kill everything before it is killed itself."""
POLL_S = 0.2
"""Seconds between two looks at the logs; ends of processes are told of at once."""


def run_job(
    job: Job,
    *,
    log_folder: Path,
    on_line: Callable[[str, str], None] | None = None,
    restarting: Restarting | None = None,
) -> None:
    """Runs a job to its end; nothing of it is left when this returns or raises.

    SIGTERM ends the job and then this process (by `SystemExit`), when called in the main thread.

    Args:
        job: what to start.
        log_folder: what each replica prints goes to `<name with . for />.log` here.
        on_line: called with a replica's name and each of its progress messages; by default they are printed.
        restarting: plans processes anew that are started again when they are killed; None ends the job then.

    Raises:
        ProcessFailed: the first process that ended badly, or the deadline passed.
    """
    log_folder.mkdir(parents=True, exist_ok=True)
    on_line = on_line or (lambda who, message: print_progress(message, replica=who))
    run = _Run(job, log_folder, on_line, restarting)
    with termination_raises():
        try:
            run.start()
            run.wait()
        finally:
            run.stop()


class _Run:
    """One job under way."""

    def __init__(
        self,
        job: Job,
        log_folder: Path,
        on_line: Callable[[str, str], None],
        restarting: Restarting | None = None,
    ) -> None:
        self._job = job
        self._deadline = time.monotonic() + job.deadline_s
        self._mark = uuid.uuid4().hex
        self._finishing = {replica.name for role in job.roles if role.finishes for replica in role.replicas}
        self._serving = {replica.name for role in job.roles if not role.finishes for replica in role.replicas}
        self._logs = {
            replica.name: LogReader(log_folder / replica.log_name)
            for role in job.roles
            for replica in role.replicas
        }
        self._host_log = LogReader(log_folder / f"{FORK_HOST}.log")
        self._on_line = on_line
        self._host: subprocess.Popen[bytes] | None = None
        self._ready = False
        self._pending = b""
        self._bad_ends: list[BadEnd] = []
        self._restarting = restarting
        units = () if restarting is None else restarting.units
        self._restarts = Restarts(units, frozenset(self._finishing))

    def start(self) -> None:
        """Starts the fork host and orders all replicas."""
        for reader in self._logs.values():
            reader.path.write_bytes(b"")
        with self._host_log.path.open("wb") as log:
            self._host = subprocess.Popen(
                # -P: the module search path is this process's, not this process's working directory.
                [sys.executable, "-P", "-m", "geokfp.components._launch.fork_host"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env={**inherited(self._mark), **_common_environment(self._job)},
                start_new_session=True,
            )
        self._order(self._orders())

    def wait(self) -> None:
        """Returns when all that finish have ended well.

        Raises:
            ProcessFailed: something ended badly, or the deadline passed.
        """
        with selectors.DefaultSelector() as selector:
            selector.register(_pipe(self._living_host().stdout), selectors.EVENT_READ)
            while self._finishing and not self._bad_ends:
                self._turn(selector, POLL_S)
                self._restart()
                self._check_deadline()
            self._await_cause(selector)
            if not self._bad_ends:
                self._await_servers(selector)
        if self._finishing or self._bad_ends:
            raise self._failure()

    def stop(self) -> None:
        """Ends whatever still runs, waits for it, and removes its shared memory."""
        host = self._host
        if host is not None:
            if not self._ready:  # deep in an import, where it does not look at the pipe
                host.kill()
            with contextlib.suppress(BrokenPipeError):
                _pipe(host.stdin).close()
            try:
                host.wait(STOP_S)
            except subprocess.TimeoutExpired:
                host.kill()
                host.wait()
            _pipe(host.stdout).close()
        kill_marked(self._mark)
        remove_shared_memory(self._job.shared_memory_prefixes)

    def _orders(self) -> Iterator[dict[str, Any]]:
        roles = self._job.roles
        preload = list(dict.fromkeys(module for role in roles for module in role.preload))
        prefixes = list(self._job.shared_memory_prefixes)
        yield {"preload": preload, "path": sys.path, "shared_memory": prefixes}
        yield from self._forks(roles)

    def _forks(self, roles: Iterable[Role]) -> Iterator[dict[str, Any]]:
        for role in roles:
            for replica in role.replicas:
                yield {
                    "name": replica.name,
                    "target": role.target,
                    "arguments": list(replica.arguments),
                    "environment": dict(replica.environment),
                    "log": str(self._logs[replica.name].path.absolute()),
                }

    def _order(self, orders: Iterable[dict[str, Any]]) -> None:
        stream = _pipe(self._living_host().stdin)
        with contextlib.suppress(BrokenPipeError):  # it ended already; `wait` says why
            stream.write("".join(json.dumps(order) + "\n" for order in orders).encode())
            stream.flush()

    def _restart(self) -> None:
        """Starts again what is to be, of the units of which a process was killed."""
        if self._restarting is None:
            return
        for unit in self._restarting.units:
            self._restarts.want(unit, self._restarting.wanted(unit))
        for step in self._restarts.steps(time.monotonic()):
            self._take(step, self._restarting)

    def _take(self, step: Step, restarting: Restarting) -> None:
        if step.what == "fail":
            self._bad_ends.extend(step.ends)
        elif step.what == "end":
            why = f"{step.cause.name}: {step.cause.cause}"
            progress(f"{why}: starts {step.unit.name} again, {step.number} of at most {MOST} times")
            restarting.ending(step.unit, step.number, why)
            self._order([{"end": sorted(step.unit.replicas)}])
        else:
            remove_shared_memory(step.unit.shared_memory_prefixes)
            roles = restarting.again(step.unit, step.number)
            for role in roles:
                names = {replica.name for replica in role.replicas}
                (self._finishing if role.finishes else self._serving).update(names)
            self._order(self._forks(roles))

    def _turn(self, selector: selectors.BaseSelector, timeout_s: float) -> None:
        if selector.select(timeout_s):
            self._read_events(selector)
        for name, reader in self._logs.items():
            for message in reader.new_progress():
                self._on_line(name, message)

    def _read_events(self, selector: selectors.BaseSelector) -> None:
        stream = _pipe(self._living_host().stdout)
        data = stream.read1(1 << 16)  # type: ignore[attr-defined]
        if not data:
            selector.unregister(stream)
            self._bad_ends.append(BadEnd(FORK_HOST, self._host_cause()))
            return
        *lines, self._pending = (self._pending + data).split(b"\n")
        for line in lines:
            self._note(json.loads(line))

    def _note(self, event: dict[str, Any]) -> None:
        if "ready" in event:
            self._ready = True
            return
        name, status = event["ended"], event["status"]
        end = BadEnd(name, event["cause"] or describe(status)) if status else None
        taken = self._restarts.ended(name, end, time.monotonic())
        self._serving.discard(name)
        if end is None:  # a server too may end before the others: when its clients say so
            self._finishing.discard(name)
        elif not taken:
            self._bad_ends.append(end)

    def _check_deadline(self) -> None:
        if time.monotonic() < self._deadline or not self._finishing or self._bad_ends:
            return
        after = f"{self._job.deadline_s:g} s after the start of {self._job.name}"
        if self._ready:
            names = sorted(self._finishing)
            self._bad_ends.append(BadEnd(names[0], f"{', '.join(names)} had not ended {after}"))
        else:
            self._bad_ends.append(BadEnd(FORK_HOST, f"the modules to preload were not imported {after}"))

    def _await_cause(self, selector: selectors.BaseSelector) -> None:
        until = time.monotonic() + OTHERS_S
        while self._bad_ends and all(end.is_secondary() for end in self._bad_ends) and selector.get_map():
            if (left_s := until - time.monotonic()) <= 0:
                return
            self._turn(selector, min(left_s, POLL_S))

    def _await_servers(self, selector: selectors.BaseSelector) -> None:
        """Gives servers time to end by themselves; how they do no longer matters."""
        until = time.monotonic() + SERVERS_S
        while self._serving and selector.get_map() and (left_s := until - time.monotonic()) > 0:
            self._turn(selector, min(left_s, POLL_S))
        self._turn(selector, 0)
        self._bad_ends.clear()

    def _failure(self) -> ProcessFailed:
        end = root_cause([*self._restarts.failing, *self._bad_ends])
        log = self._host_log if end.name == FORK_HOST else self._logs[end.name]
        return ProcessFailed(end.name, end.cause, log.last_lines())

    def _host_cause(self) -> str:
        host = self._living_host()
        with contextlib.suppress(subprocess.TimeoutExpired):
            host.wait(POLL_S)
        if host.returncode is not None and host.returncode < 0:
            return describe(host.returncode)
        lines = self._host_log.last_lines()
        return f"could not start the processes: {lines[-1] if lines else 'it ended without a word'}"

    def _living_host(self) -> "subprocess.Popen[bytes]":
        assert self._host is not None
        return self._host


def _common_environment(job: Job) -> dict[str, str]:
    """Returns the variables that all replicas share; they are set before the preload, which may read them."""
    environments = [replica.environment for role in job.roles for replica in role.replicas]
    first, *others = environments
    return {name: value for name, value in first.items() if all(other.get(name) == value for other in others)}


def _pipe(stream: IO[bytes] | None) -> IO[bytes]:
    assert stream is not None
    return stream


@contextlib.contextmanager
def termination_raises() -> Iterator[None]:
    """Turns SIGTERM into an exception, so that the job is ended; only a main thread can."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def terminate(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
        signal.signal(number, signal.SIG_IGN)  # the job is being ended; once is enough
        raise Terminated

    before = signal.signal(signal.SIGTERM, terminate)
    try:
        yield
    except Terminated:
        raise SystemExit(128 + signal.SIGTERM) from None
    finally:
        signal.signal(signal.SIGTERM, before or signal.SIG_DFL)
