"""Starts `local_run` and turns its output into events; ends everything with it.

Knows nothing of terminals or of where results go.
"""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

STOP_S = 4.0
"""Seconds that an interrupted run has to end its processes itself."""

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_EVENT = re.compile(
    r"\d\d:\d\d:\d\d\.\d+ - \w+ - (?:Executing task '(?P<started>[^']+)'"
    r"|Task '(?P<ended>[^']+)' finished with status (?P<status>\w+))"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Event:
    """Something that happened to a step."""

    folder: str
    """The step's folder name, as kfp.local names tasks."""
    kind: str
    """started, succeeded, skipped, failed or canceled."""
    seconds: float | None = None
    """How long an ended step took, where what reports it knows; otherwise what shows it measures."""


def read_event(line: str) -> Event | None:
    """Returns the event that a line of kfp.local's log reports, None for any other line."""
    match = _EVENT.match(_COLOUR.sub("", line))
    if match is None:
        return None
    if match["started"]:
        return Event(folder=match["started"], kind="started")
    return Event(folder=match["ended"], kind="succeeded" if match["status"] == "SUCCESS" else "failed")


def run_supervised(
    package: Path,
    arguments: Mapping[str, Any],
    pipeline_root: Path,
    on_line: Callable[[str], None],
) -> bool:
    """Runs a compiled pipeline and returns when all its processes have ended, whatever happens.

    Args:
        package: the compiled YAML.
        arguments: values by parameter.
        pipeline_root: where the steps' outputs go; exists.
        on_line: called with each line that kfp or a step prints, without its end.

    Returns:
        Whether all steps succeeded.
    """
    request = {"package": str(package), "arguments": dict(arguments), "pipeline_root": str(pipeline_root)}
    command = [sys.executable, "-W", "ignore", "-m", "geokfp.pipelines._command_line.local_run"]
    with subprocess.Popen(  # noqa: SIM117  the inner block ends it before the outer one waits
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        env=_environment(),
        start_new_session=True,  # Ctrl-C reaches this process alone, which ends the others in order
    ) as process:
        with _ended_with_block(process):
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(json.dumps(request))
            process.stdin.close()
            for line in process.stdout:
                on_line(line.rstrip("\n"))
            return process.wait() == 0


def _environment() -> dict[str, str]:
    """A step's command is `python3`: this interpreter's folder must come first, and lines must not wait."""
    folder = str(Path(sys.executable).parent)
    path = os.pathsep.join([folder, *filter(None, [os.environ.get("PATH")])])
    return {**os.environ, "PATH": path, "PYTHONUNBUFFERED": "1"}


@contextmanager
def _ended_with_block(process: subprocess.Popen[str]) -> Iterator[None]:
    on_terminate = signal.signal(signal.SIGTERM, _leave)
    on_interrupt = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # a second Ctrl-C must not leave processes behind
        if process.poll() is None:
            _stop(process)
        signal.signal(signal.SIGINT, on_interrupt)
        signal.signal(signal.SIGTERM, on_terminate)


def _leave(number: int, _frame: object) -> NoReturn:
    sys.exit(128 + number)


def _stop(process: subprocess.Popen[str]) -> None:
    process.terminate()
    try:
        process.wait(STOP_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
