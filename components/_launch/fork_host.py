"""The process that a job's replicas are forked from: `python -m geokfp.components._launch.fork_host`.

It imports what the roles preload once, forks a replica for each order that comes in on standard input
(JSON lines), and writes what happens to them on standard output (JSON lines)::

    in   {"shared_memory": [prefix, ...], "preload": [module, ...]}          first
         {"name", "target", "arguments", "environment", "log"}              one a replica
    out  {"ready": seconds}   {"started": name, "pid": pid}
         {"ended": name, "status": exit status or minus the signal, "cause": one line or ""}

When standard input closes, for whatever reason, it kills all that it started, removes their shared
memory and ends. Knows nothing of what the replicas do.
"""

import contextlib
import ctypes
import gc
import importlib
import json
import os
import selectors
import signal
import sys
import time
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from . import environment
from .shared_memory import remove_shared_memory

_PR_SET_PDEATHSIG = 1
_CAUSE_LIMIT = 2000
"""Bytes of a cause: below PIPE_BUF, so that reports of several replicas do not mix."""


class ForkHost:
    """Forks replicas and reports their ends; all in one thread."""

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
            open_ = True
            while open_:
                for key, _ in selector.select(timeout=0.5):
                    if key.fd == self._orders:
                        open_ = self._read_orders()
                    else:
                        os.read(self._wake, 4096)
                self._reap()
        self._kill_all()

    def _read_orders(self) -> bool:
        data = os.read(self._orders, 1 << 16)
        *lines, self._pending = (self._pending + data).split(b"\n")
        for line in lines:
            self._obey(json.loads(line))
        return bool(data)

    def _obey(self, order: dict[str, Any]) -> None:
        if self._header is None:
            self._header = order
            began = time.monotonic()
            for module in order["preload"]:
                importlib.import_module(module)
            gc.freeze()
            self._emit({"ready": time.monotonic() - began})
            return
        pid = os.fork()
        if pid == 0:
            self._become(order)
        self._names[pid] = order["name"]
        self._emit({"started": order["name"], "pid": pid})

    def _become(self, order: dict[str, Any]) -> None:
        status = 1
        try:
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
            os.setsid()
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            for end in (self._orders, self._events, self._wake, self._wake_end, self._reports):
                os.close(end)
            _print_to(order["log"])
            environment.apply(order["environment"])
            status = _run(order["target"], order["arguments"])
        except BaseException as error:  # noqa: BLE001
            traceback.print_exc()
            text = " ".join(str(error).split())
            named = f"{type(error).__name__}: {text}" if text else type(error).__name__
            report = json.dumps({"name": order["name"], "cause": named[: _CAUSE_LIMIT // 6]})
            with contextlib.suppress(OSError):
                os.write(self._report_end, report.encode() + b"\n")
        finally:
            with contextlib.suppress(OSError, ValueError):
                sys.stdout.flush()
                sys.stderr.flush()
            os._exit(status)

    def _reap(self) -> None:
        while self._names:
            pid, wait_status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return
            name = self._names.pop(pid, None)
            if name is None:
                continue
            _kill_group(pid)
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
        for pid in self._names:
            os.waitpid(pid, 0)
        if self._header is not None:
            remove_shared_memory(self._header["shared_memory"])

    def _emit(self, event: Mapping[str, Any]) -> None:
        with contextlib.suppress(BrokenPipeError):
            os.write(self._events, json.dumps(event).encode() + b"\n")


def _run(target: str, arguments: list[str]) -> int:
    module, _, function = target.partition(":")
    try:
        result = getattr(importlib.import_module(module), function)(arguments)
    except SystemExit as leaving:
        result = leaving.code
    if isinstance(result, str):
        raise RuntimeError(result)
    return int(result or 0)


def _print_to(log: str) -> None:
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    sys.stdout = os.fdopen(1, "w", buffering=1, encoding="utf-8", errors="replace", closefd=False)
    sys.stderr = os.fdopen(2, "w", buffering=1, encoding="utf-8", errors="replace", closefd=False)


def _kill_group(pid: int) -> None:
    for kill in (os.killpg, os.kill):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            kill(pid, signal.SIGKILL)


def main() -> None:
    """Serves orders on standard input; whatever a preloaded module prints goes to standard error."""
    orders, events = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    for end in (orders, events):
        os.set_inheritable(end, False)
    with contextlib.suppress(KeyboardInterrupt):
        ForkHost(orders, events).serve()


if __name__ == "__main__":
    Path("/proc/self/comm").write_text("geokfp-forkhost", encoding="ascii")
    main()
