"""What a freshly forked process does to become a replica.

It dies with its host, prints to its own log and runs its target. Knows nothing of the other replicas.
"""

import contextlib
import faulthandler
import importlib
import json
import os
import sys
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from .environment import apply
from .parent import die_with_parent

_CAUSE_LIMIT = 600
"""Characters of a cause: as JSON below PIPE_BUF, so that the reports of several replicas do not mix."""


@dataclass(frozen=True, slots=True)
class _Own:
    """Which replica this process is."""

    pid: int
    name: str
    report_end: int


_own: _Own | None = None


def become(order: Mapping[str, Any], *, host: int, report_end: int) -> NoReturn:
    """Runs the order's target in this process and ends it, without unwinding what was forked along.

    Args:
        order: name, target, arguments, environment and log, as the host got it.
        host: the process that forked this one.
        report_end: pipe to which the cause of a failure goes, as one JSON line.
    """
    global _own
    _own = _Own(os.getpid(), order["name"], report_end)
    status = 1
    try:
        _follow(host)
        os.setsid()
        _name(order["name"])
        _print_to(order["log"])
        faulthandler.enable()
        apply(order["environment"])
        status = _run(order["target"], order["arguments"])
    except BaseException as error:  # noqa: BLE001
        traceback.print_exc()
        _report(_describe(error))
    finally:
        _leave(status)


def fail(cause: str | BaseException) -> NoReturn:
    """Ends this replica at once as failed, from whichever thread, whatever its main thread waits for.

    Args:
        cause: one line that the supervisor will give as the cause, or the error to take it from.
    """
    _report(_describe(cause) if isinstance(cause, BaseException) else cause)
    _leave(1)


def _leave(status: int) -> NoReturn:
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(status)


def _follow(host: int) -> None:
    die_with_parent()
    if os.getppid() != host:  # it died before the line above
        os._exit(1)


def _name(name: str) -> None:
    """Shows in `ps` and `top` who this is; the kernel keeps 15 characters."""
    Path("/proc/self/comm").write_text(name[-15:], encoding="ascii")


def _print_to(log: str) -> None:
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    for standard in (1, 2):
        os.dup2(descriptor, standard)
    os.close(descriptor)
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(encoding="utf-8", errors="replace", line_buffering=True)  # type: ignore[union-attr]


def _run(target: str, arguments: list[str]) -> int:
    module, _, function = target.partition(":")
    try:
        result = getattr(importlib.import_module(module), function)(list(arguments))
    except SystemExit as leaving:
        result = leaving.code
    if isinstance(result, str):
        raise RuntimeError(result)
    status = int(result or 0)
    return status if 0 <= status <= 255 else 1


def _describe(error: BaseException) -> str:
    text = " ".join(str(error).split())
    kind = type(error).__name__
    return f"{kind}: {text}" if text else kind


def _report(cause: str) -> None:
    if _own is None or os.getpid() != _own.pid:  # a fork of the target's that let an error through
        return
    line = json.dumps({"name": _own.name, "cause": cause[:_CAUSE_LIMIT]})
    with contextlib.suppress(OSError):
        os.write(_own.report_end, line.encode() + b"\n")
