"""Plays the nodes of a cluster double: runs the pods' own commands as processes, and tells how they end."""

import dataclasses
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from geokfp.components._launch.cluster_run import Placed, run_on_clusters
from geokfp.components._launch.pod_commands import PodCommand, pod_commands
from geokfp.components._launch.pods import PodLaunch

from .api_server import ApiServerDouble
from .cluster_script import ClusterScript
from .launched import at, quick

TESTS = Path(__file__).parents[1]


def on_a_double(server: ApiServerDouble, folder: Path, first_address: int) -> Callable[..., None]:
    """Returns who runs launches: on a double, whatever cluster they are placed at; see `PodProcesses`."""

    def run(placed: Sequence[Placed], **told: Any) -> None:
        (one,) = [dataclasses.replace(each, cluster=at(server, folder)) for each in placed]
        script = ClusterScript(server, one.launch.namespace)
        pods = PodProcesses(script, one.launch, one.kind, first_address)
        try:
            run_on_clusters([one], settings=quick(), **told)
        finally:
            pods.join()

    return run


class PodProcesses:
    """All pods of one launch, at addresses of loopback."""

    def __init__(self, script: ClusterScript, launch: PodLaunch, kind: str, first_address: int) -> None:
        """Starts each as soon as the cluster has its pod.

        Args:
            script: of the double.
            launch: what was started there.
            kind: by what kind of objects.
            first_address: pods are 127.0.77.this and those after it.
        """
        commands = pod_commands(launch, kind, os.environ)
        addresses = {
            command.host: f"127.0.77.{first_address + number}" for number, command in enumerate(commands)
        }
        self._script = script
        self._threads = [
            threading.Thread(target=self._run, args=(command.at(addresses),), daemon=True)
            for command in commands
        ]
        for thread in self._threads:
            thread.start()

    def join(self) -> None:
        for thread in self._threads:
            thread.join()

    def _run(self, command: PodCommand) -> None:
        self._script.pod(command.name)
        process = subprocess.Popen(
            [sys.executable, *command.command[1:]],
            env={**os.environ, "PYTHONPATH": str(TESTS), **command.environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._tell(command, lambda name: self._script.start(name))
        lines = []
        assert process.stdout is not None
        with process.stdout:
            for line in process.stdout:
                lines.append(line.rstrip("\n"))
                self._tell(command, lambda name: self._script.log(name, lines[-1]))
        if code := process.wait():
            words = "\n".join(lines[-5:])
            self._tell(command, lambda name: self._script.fail(name, exitCode=code, message=words))
        else:
            self._tell(command, lambda name: self._script.succeed(name))

    def _tell(self, command: PodCommand, tell: Callable[[str], None]) -> None:
        """Tells the cluster of a pod, unless that is deleted."""
        with self._script.server.store.changed:
            if self._script.has(command.name):
                tell(command.name)
