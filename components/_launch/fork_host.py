"""The process that a job's replicas are forked from: `python -m geokfp.components._launch.fork_host`.

It imports what the roles preload once, forks a replica for each order that comes in on standard input
(JSON lines), and writes what happens to them on standard output (JSON lines)::

    in   {"preload": [module, ...], "path": sys.path, "shared_memory": [prefix, ...]}      first
         {"name", "target", "arguments", "environment", "log"}                             one a replica
         {"end": [name, ...]}                            kills these, whose names may be given again then
    out  {"ready": seconds}
         {"ended": name, "status": exit status or minus the signal, "cause": one line or ""}

When standard input closes, for whatever reason, it kills all that it started, removes their shared
memory and ends. Knows nothing of what the replicas do.
"""

import contextlib
import gc
import importlib
import json
import os
import selectors
import signal
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .environment import job_mark
from .marked import kill_marked
from .parent import die_with_parent
from .replica import become
from .shared_memory import remove_shared_memory

POLL_S = 0.2
"""Seconds after which ends are looked for even when no signal told of them."""


class ForkHost:
    """Forks replicas and reports their ends.

    All in one thread: a replica dies with the thread that forked it.
    """

    def __init__(self, orders: int, events: int) -> None:
        self._orders = orders
        self._events = events
        self._pending = b""
        self._header: dict[str, Any] | None = None
        self._names: dict[int, str] = {}
        self._causes: dict[str, str] = {}
        self._reports, self._report_end = os.pipe()
        self._wake, self._wake_end = os.pipe()
        for end in (self._reports, self._wake, self._wake_end):
            os.set_blocking(end, False)

    def serve(self) -> None:
        """Works until the orders end, then kills whatever still runs."""
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._wake_end, warn_on_full_buffer=False)
        with selectors.DefaultSelector() as selector:
            for end in (self._orders, self._wake):
                selector.register(end, selectors.EVENT_READ)
            more = True
            while more:
                for key, _ in selector.select(timeout=POLL_S):
                    if key.fd == self._orders:
                        more = self._read_orders()
                    else:
                        os.read(self._wake, 4096)
                self._reap()
        self._kill_all()

    def _read_orders(self) -> bool:
        data = os.read(self._orders, 1 << 16)
        *lines, self._pending = (self._pending + data).split(b"\n")
        for line in lines:
            order = json.loads(line)
            if self._header is None:
                self._prepare(order)
            elif "end" in order:
                self._end(order["end"])
            else:
                self._fork(order)
        return bool(data)

    def _prepare(self, header: dict[str, Any]) -> None:
        self._header = header
        began = time.monotonic()
        sys.path[:] = header["path"]
        die_with_parent()  # an import may hang, and nobody looks at the orders' end meanwhile
        for module in header["preload"]:
            importlib.import_module(module)
        die_with_parent(False)  # from here on there is more to end than this process
        gc.freeze()  # else the first collection of each replica copies every page
        self._emit({"ready": time.monotonic() - began})

    def _fork(self, order: dict[str, Any]) -> None:
        sys.stdout.flush()
        sys.stderr.flush()
        host = os.getpid()
        pid = os.fork()
        if pid == 0:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            for end in (self._orders, self._events, self._wake, self._wake_end, self._reports):
                os.close(end)
            become(order, host=host, report_end=self._report_end)
        self._names[pid] = order["name"]

    def _end(self, names: list[str]) -> None:
        for pid, name in self._names.items():  # not yet waited for, so that their numbers are still theirs
            if name in names:
                _kill_group(pid)

    def _reap(self) -> None:
        while self._names:
            ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if ended is None:
                return
            # Before the end is collected, so that nothing else can have its number by now.
            _kill_group(ended.si_pid)
            _, wait_status = os.waitpid(ended.si_pid, 0)
            name = self._names.pop(ended.si_pid, None)
            if name is None:
                continue
            self._read_reports()
            status = os.waitstatus_to_exitcode(wait_status)
            self._emit({"ended": name, "status": status, "cause": self._causes.pop(name, "")})

    def _read_reports(self) -> None:
        data = b""
        with contextlib.suppress(BlockingIOError):
            while chunk := os.read(self._reports, 1 << 16):
                data += chunk
        for line in data.splitlines():
            report = json.loads(line)
            self._causes[report["name"]] = report["cause"]

    def _kill_all(self) -> None:
        for pid in self._names:
            _kill_group(pid)
        kill_marked(job_mark())
        for pid in self._names:
            os.waitpid(pid, 0)
        if self._header is not None:
            remove_shared_memory(self._header["shared_memory"])

    def _emit(self, event: Mapping[str, Any]) -> None:
        with contextlib.suppress(BrokenPipeError):
            os.write(self._events, json.dumps(event).encode() + b"\n")


def _kill_group(pid: int) -> None:
    """Kills a child that was not yet waited for, with its group, which it may not have made yet."""
    for kill in (os.killpg, os.kill):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            kill(pid, signal.SIGKILL)


def main() -> None:
    """Serves orders on standard input; whatever a preloaded module prints goes to standard error."""
    orders, events = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    with contextlib.suppress(KeyboardInterrupt):
        ForkHost(orders, events).serve()


if __name__ == "__main__":
    Path("/proc/self/comm").write_text("geokfp-forkhost", encoding="ascii")
    main()
