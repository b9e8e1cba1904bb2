"""Runs launches against API server doubles in a thread, so that a test can play the cluster meanwhile."""

import queue
import threading
from collections.abc import Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from geokfp.components._launch.cluster_run import Cluster, Placed, WatchSettings, run_on_clusters
from geokfp.components._launch.pods import PodLaunch

from .api_server import ApiServerDouble
from .cluster_script import DEADLINE_S
from .kubernetes_schemas import SchemaError, check_object
from .pod_launches import pod_group, pod_launch

NAMESPACE = "geo"
QUICK: dict[str, float] = {
    "poll_s": 0.05,
    "max_poll_s": 0.2,
    "pull_patience_s": 0.1,
    "others_s": 0.3,
    "reach_s": 20.0,
    "retry_s": 20.0,
    "gone_s": 20.0,
    "beat_s": 0.05,
}


def quick(**settings: float) -> WatchSettings:
    """Returns settings for a double: all is soon, but what depends on a machine's load."""
    return WatchSettings(**{**QUICK, **settings})


def launch(*groups: Any, **fields: Any) -> PodLaunch:
    """Returns a launch of `root/0`, `worker/0` and `worker/1`, unless groups are given."""
    return pod_launch(
        *(groups or (pod_group("root", 1), pod_group("worker", 2))), **{"namespace": NAMESPACE, **fields}
    )


def refuse_what_schemas_do(document: dict[str, Any]) -> None:
    """What an API server double does with each object that it is sent."""
    try:
        check_object(document)
    except SchemaError as error:
        raise ValueError(str(error)) from error


class Launched:
    """A run under way."""

    def __init__(self, placed: Sequence[Placed], settings: WatchSettings) -> None:
        self.lines: list[tuple[str, str]] = []
        self.references: list[dict[str, Any]] = []
        self.beats: queue.Queue[None] = queue.Queue()
        self._result: Future[None] = Future()
        self._thread = threading.Thread(target=self._run, args=(placed, settings), daemon=True)
        self._thread.start()

    def result(self) -> None:
        """Waits for the end; raises what it raised."""
        try:
            self._result.result(DEADLINE_S)
        finally:
            self._thread.join(DEADLINE_S)

    def texts(self, name: str) -> list[str]:
        """Returns what was told of a name."""
        return [text for who, text in list(self.lines) if who == name]

    def _run(self, placed: Sequence[Placed], settings: WatchSettings) -> None:
        try:
            run_on_clusters(
                placed,
                on_line=lambda *line: self.lines.append(line),
                beat=lambda: self.beats.put(None),
                on_created=self.references.append,
                settings=settings,
            )
        except BaseException as error:  # noqa: BLE001 (the test's own thread raises it)
            self._result.set_exception(error)
        else:
            self._result.set_result(None)


def at(server: ApiServerDouble, folder: Path, name: str = "") -> Cluster:
    """Returns the cluster of a double."""
    return Cluster(name=name, kubeconfig=server.kubeconfig(folder / (name or "double")))


def start(
    server: ApiServerDouble,
    folder: Path,
    kind: str = "job",
    launched: PodLaunch | None = None,
    **settings: float,
) -> Launched:
    """Starts a launch at one double."""
    server.checks = [refuse_what_schemas_do]
    placed = Placed(launch=launched or launch(), kind=kind, cluster=at(server, folder))
    return Launched([placed], quick(**settings))
