"""Runs launches without a cluster: the pods' own commands and environment, as processes of this machine.

DNS names are mapped to addresses. Each process has a network and a /dev/shm of its own where root allows it.
Stands in for `run_on_clusters`: for trying a launch out, and for tests.
"""

import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from .cluster import Placed
from .environment import inherited
from .errors import ProcessFailed
from .leftovers import pods_folder
from .local import termination_raises
from .log_reader import LogReader
from .pod_commands import PodCommand, pod_commands
from .pod_network import PodNetwork, can_be_apart, opened_network
from .progress import progress
from .verdict import BadEnd, describe, root_cause

POLL_S = 0.2
"""Seconds between two looks at the processes."""
OTHERS_S = 2.0
"""Seconds in which the cause of an end that another's end would explain may still come in."""
_REMOTE = re.compile(r'"(\w+://[^"]*)"')
"""A URI in what a pod is told, in JSON: of the hand-over, or of what the pod reads itself."""
STOP_S = 10.0
"""Seconds that processes get to end theirs before they are killed."""


def run_as_processes(
    placed: Sequence[Placed],
    *,
    on_line: Callable[[str, str], None],
    beat: Callable[[], None],
    on_created: Callable[[dict[str, Any]], None] = lambda reference: None,  # noqa: ARG005
) -> None:
    """Runs launches to their end; nothing of them is left when this returns or raises.

    Args:
        placed: what to run; where does not matter.
        on_line: called with a pod's name (`group/index`, of several clusters `cluster/group/index`) and each
            of its progress messages.
        beat: called again and again.
        on_created: called with what was started, one a launch.

    Raises:
        ProcessFailed: a pod ended badly, or a launch ran past its deadline.
        InputError: a variable of the pods comes from a cluster.
    """
    commands = [_commands(one, prefixed=len(placed) > 1) for one in placed]
    told = _why_not_apart(placed)
    progress(f"pods share this machine's network and /dev/shm: {told}" if told else "pods have own networks")
    with ExitStack() as stack:
        stack.enter_context(termination_raises())
        logs = stack.enter_context(pods_folder())
        hosts = [command.host for each in commands for command in each]
        network = stack.enter_context(opened_network(hosts, apart=not told))
        run = _Run(network, logs, on_line, beat)
        stack.callback(run.stop)
        for one, of_launch in zip(placed, commands, strict=True):
            run.start(of_launch)
            on_created({"kind": "Processes", "namespace": one.launch.namespace, "name": one.launch.name})
        run.wait(time.monotonic() + max(one.launch.deadline_s for one in placed))


def _commands(one: Placed, *, prefixed: bool) -> list[PodCommand]:
    site = f"{one.cluster.name}/" if prefixed and one.cluster.name else ""
    found = pod_commands(one.launch, one.kind, inherited(""))
    return [replace(command, name=f"{site}{command.name}") for command in found]


def _why_not_apart(placed: Sequence[Placed]) -> str:
    for document in (group.document for one in placed for group in one.launch.groups):
        if remote := _REMOTE.search(document):
            return f"they must reach {remote[1]}"
    return can_be_apart()


@dataclass(slots=True)
class _Pod:
    """One process under way."""

    name: str
    process: "subprocess.Popen[bytes]"
    log: LogReader


class _Run:
    """All processes under way."""

    def __init__(
        self,
        network: PodNetwork,
        logs: Path,
        on_line: Callable[[str, str], None],
        beat: Callable[[], None],
    ) -> None:
        self._network = network
        self._logs = logs
        self._on_line = on_line
        self._beat = beat
        self._pods: list[_Pod] = []
        self._ends: list[BadEnd] = []

    def start(self, commands: Sequence[PodCommand]) -> None:
        """Starts the pods of one launch."""
        for command in commands:
            told = command.at(self._network.addresses)
            log = self._logs / f"{command.name.replace('/', '.')}.log"
            temporary = log.with_suffix(".tmp")  # gone with the logs, as a pod's files are with the pod
            temporary.mkdir()
            told_also = {"TMPDIR": str(temporary), **told.environment}
            program = [sys.executable if told.command[0] == "python3" else told.command[0], *told.command[1:]]
            process = self._network.start(
                told.host, program, {**inherited(""), **told_also}, told.shared_memory_bytes, log
            )
            self._pods.append(_Pod(command.name, process, LogReader(log)))

    def wait(self, deadline_s: float) -> None:
        """Returns when all have ended well."""
        running = list(self._pods)
        decided_s = 0.0
        while running and (not self._ends or time.monotonic() < decided_s):
            self._beat()
            self._show()
            running = [pod for pod in running if not self._ended(pod)]
            if self._ends and not decided_s:
                secondary = all(end.is_secondary() for end in self._ends)
                decided_s = time.monotonic() + (OTHERS_S if secondary else 0.0)
            if running and time.monotonic() > deadline_s:
                self._ends.append(BadEnd(running[0].name, "had not ended by the launch's deadline"))
                break
            time.sleep(POLL_S)
        self._show()
        if self._ends:
            end = root_cause(self._ends)
            pod = next(pod for pod in self._pods if pod.name == end.name)
            raise ProcessFailed(end.name, end.cause, pod.log.last_lines())

    def stop(self) -> None:
        """Ends whatever still runs, and waits for it."""
        running = [pod.process for pod in self._pods if pod.process.poll() is None]
        for process in running:
            process.send_signal(signal.SIGTERM)
        until = time.monotonic() + STOP_S
        for process in running:
            try:
                process.wait(max(0.0, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def _show(self) -> None:
        for pod in self._pods:
            for message in pod.log.new_progress():
                self._on_line(pod.name, message)

    def _ended(self, pod: _Pod) -> bool:
        status = pod.process.poll()
        if status:
            self._ends.append(BadEnd(pod.name, _cause(pod, status)))
        return status is not None


def _cause(pod: _Pod, status: int) -> str:
    """Returns what the pod itself said last, or how it ended."""
    lines = pod.log.last_lines()
    _, failed, cause = lines[-1].partition(" failed: ") if lines else ("", "", "")
    return cause if failed else describe(status)
