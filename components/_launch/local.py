"""THE supervisor: runs a job's processes on this machine or in this pod, and ends all when one fails.

Knows nothing of what the processes do, of Kubernetes, or of KFP.
"""

import contextlib
import json
import selectors
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import IO, Any

from .environment import inherited
from .errors import ProcessFailed, Terminated
from .log_reader import LogReader
from .plan import Job
from .progress import print_progress
from .shared_memory import remove_shared_memory

FORK_HOST = "fork-host"
"""Name under which the process that the replicas are forked from appears in errors."""

OTHERS_S = 0.5
"""Seconds after the first bad end in which an earlier cause may still come in."""
SERVERS_S = 2.0
"""Seconds that roles which do not finish get to end by themselves at the end of the job."""
STOP_S = 3.0
"""Seconds that the fork host gets to kill everything before it is killed itself."""
POLL_S = 0.2

_SECONDARY = ("closed by peer", "connection reset", "broken pipe", "connection refused", "link", "peer")
"""Words of a cause that tells of another process's death."""


def run_job(job: Job, *, log_folder: Path, on_line: Callable[[str, str], None] | None = None) -> None:
    """Runs a job to its end; nothing of it is left when this returns or raises.

    Args:
        job: what to start.
        log_folder: what each replica prints goes to `<name with . for />.log` here.
        on_line: called with a replica's name and each of its progress messages; by default they are printed.

    Raises:
        ProcessFailed: the first process that ended badly, or the deadline passed.
    """
    log_folder.mkdir(parents=True, exist_ok=True)
    with _termination_raises():
        run = _Run(job, log_folder, on_line or (lambda who, message: print_progress(message, replica=who)))
        try:
            run.wait()
        finally:
            run.stop()


class _Run:
    """One job under way."""

    def __init__(self, job: Job, log_folder: Path, on_line: Callable[[str, str], None]) -> None:
        self._job = job
        self._deadline = time.monotonic() + job.deadline_s
        self._finishing = {replica.name for role in job.roles if role.finishes for replica in role.replicas}
        self._serving = {replica.name for role in job.roles if not role.finishes for replica in role.replicas}
        self._ready = False
        self._logs = {
            name: LogReader(log_folder / f"{name.replace('/', '.')}.log")
            for name in self._finishing | self._serving
        }
        self._host_log = LogReader(log_folder / f"{FORK_HOST}.log")
        self._on_line = on_line
        self._pending = b""
        self._failures: list[tuple[float, str, str]] = []
        with self._host_log.path.open("wb") as log:
            self._host = subprocess.Popen(
                [sys.executable, "-m", "geokfp.components._launch.fork_host"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env=inherited(),
                start_new_session=True,
            )
        self._order_all()

    def wait(self) -> None:
        """Returns when all that finish have ended well.

        Raises:
            ProcessFailed: something ended badly, or the deadline passed.
        """
        with selectors.DefaultSelector() as selector:
            selector.register(_pipe(self._host.stdout), selectors.EVENT_READ)
            while self._finishing and not self._failures:
                self._turn(selector)
            self._let_others_report(selector)
            servers_end = time.monotonic() + SERVERS_S
            while self._serving and not self._failures and time.monotonic() < servers_end:
                self._turn(selector)
        self._show_progress()
        if self._failures:
            raise self._worst()

    def stop(self) -> None:
        """Ends whatever still runs, waits for it, and removes its shared memory."""
        with contextlib.suppress(BrokenPipeError):
            _pipe(self._host.stdin).close()
        try:
            self._host.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self._host.kill()
            self._host.wait()
        _pipe(self._host.stdout).close()
        remove_shared_memory(self._job.shared_memory_prefixes)

    def _order_all(self) -> None:
        roles = self._job.roles
        preload = list(dict.fromkeys(module for role in roles for module in role.preload))
        orders: list[dict[str, Any]] = [
            {"shared_memory": list(self._job.shared_memory_prefixes), "preload": preload}
        ]
        orders += [
            {
                "name": replica.name,
                "target": role.target,
                "arguments": list(replica.arguments),
                "environment": dict(replica.environment),
                "log": str(self._logs[replica.name].path),
            }
            for role in roles
            for replica in role.replicas
        ]
        for reader in self._logs.values():
            reader.path.write_bytes(b"")
        stream = _pipe(self._host.stdin)
        with contextlib.suppress(BrokenPipeError):
            stream.write("".join(json.dumps(order) + "\n" for order in orders).encode())
            stream.flush()

    def _turn(self, selector: selectors.BaseSelector) -> None:
        if selector.select(timeout=POLL_S):
            self._read_events(selector)
        self._show_progress()
        if time.monotonic() > self._deadline and self._finishing and not self._failures:
            names = ", ".join(sorted(self._finishing))
            cause = f"{names} had not ended {self._job.deadline_s:g} s after the start of {self._job.name}"
            self._failures.append((time.monotonic(), min(self._finishing), cause))

    def _read_events(self, selector: selectors.BaseSelector) -> None:
        stream = _pipe(self._host.stdout)
        data = stream.read1(1 << 16)  # type: ignore[attr-defined]
        if not data:
            selector.unregister(stream)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._host.wait(POLL_S)
            self._failures.append((time.monotonic(), FORK_HOST, self._host_cause()))
            return
        *lines, self._pending = (self._pending + data).split(b"\n")
        for line in lines:
            self._note(json.loads(line))

    def _note(self, event: dict[str, Any]) -> None:
        if "ready" in event:
            self._ready = True
        if "ended" not in event:
            return
        name, status, cause = event["ended"], event["status"], event["cause"]
        self._finishing.discard(name)
        was_serving = name in self._serving
        self._serving.discard(name)
        if status == 0 and was_serving and self._finishing and not cause:
            return
        if status != 0:
            self._failures.append((time.monotonic(), name, cause or _describe(status)))

    def _let_others_report(self, selector: selectors.BaseSelector) -> None:
        if not self._failures or not selector.get_map():
            return
        until = self._failures[0][0] + OTHERS_S
        while (left := until - time.monotonic()) > 0 and selector.get_map():
            if selector.select(timeout=left):
                self._read_events(selector)

    def _worst(self) -> ProcessFailed:
        hosts = [failure for failure in self._failures if failure[1] == FORK_HOST]
        own = [failure for failure in self._failures if not _tells_of_another(failure[2])]
        _, name, cause = (hosts or own or self._failures)[0]
        log = self._host_log if name == FORK_HOST else self._logs[name]
        return ProcessFailed(name, cause, log.last_lines())

    def _host_cause(self) -> str:
        code = self._host.poll()
        lines = self._host_log.last_lines()
        if code is not None and code < 0:
            return _describe(code)
        return f"could not start the processes: {lines[-1] if lines else 'it ended without a word'}"

    def _show_progress(self) -> None:
        for name, reader in self._logs.items():
            for message in reader.new_progress():
                self._on_line(name, message)


def _describe(status: int) -> str:
    if status >= 0:
        return f"ended with exit status {status}"
    try:
        return f"killed by {signal.Signals(-status).name}"
    except ValueError:
        return f"killed by signal {-status}"


def _tells_of_another(cause: str) -> bool:
    return any(word in cause.lower() for word in _SECONDARY)


def _pipe(stream: IO[bytes] | None) -> IO[bytes]:
    assert stream is not None
    return stream


@contextlib.contextmanager
def _termination_raises() -> Iterator[None]:
    """Turns SIGTERM into an exception, so that the job is ended; only a main thread can."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def terminate(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
        raise Terminated

    before = signal.signal(signal.SIGTERM, terminate)
    try:
        yield
    except Terminated:
        raise SystemExit(128 + signal.SIGTERM) from None
    finally:
        signal.signal(signal.SIGTERM, before)
