"""Shows and keeps, while a process works, what it measures. One thread; nothing waits for it."""

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ..._launch import progress
from ..links.client import Client
from ..topology import ROOT
from ..transport.base import Traffic
from ..tree_job import TreeJob
from .endpoint import Endpoint
from .record import Record, record_of
from .recorder import Recorder
from .report import Measured
from .table import table

WRITE_S = 5.0
"""Seconds between two writings of the record, and between two tables in the root's log."""
TARGETS = "targets"


@dataclass(frozen=True, kw_only=True, slots=True)
class WatchSettings:
    """What is shown of a process, and where."""

    process: str
    """Its name in the tree."""
    member: str
    """Its name in the folder."""
    folder: str
    """Of the records; empty for none."""
    host: str
    """Where the page for Prometheus listens."""
    port: int
    """The same; 0 for none."""
    children: frozenset[str]
    """Nodes and workers that dial the process."""
    shows_table: bool = False
    """Whether its log has a table of its links."""


class Watch:
    """Watches one process until it is closed.

    Args:
        settings: what is shown, and where.
        recorder: what the process is told to.
        traffic: gives the bytes of each link so far, by the node at the other end.

    Raises:
        InputError: the port cannot be had.
    """

    def __init__(
        self, settings: WatchSettings, recorder: Recorder, traffic: Callable[[], Mapping[str, Traffic]]
    ) -> None:
        self._settings, self._recorder, self._traffic = settings, recorder, traffic
        self._ended = threading.Event()
        self._endpoint = None
        if settings.folder:
            Path(settings.folder).mkdir(parents=True, exist_ok=True)
        if settings.port:
            self._endpoint = Endpoint(settings.host, settings.port, self.record)
            progress(f"metrics of {settings.process} at http://{self._endpoint.address}/metrics")
        if settings.folder and self._endpoint is not None:
            path = Path(settings.folder) / TARGETS / f"{settings.member}.json"
            self._endpoint.write_target(path, settings.process)
        self._thread = threading.Thread(target=self._go, name=f"{settings.process} measures", daemon=True)
        self._thread.start()

    def record(self) -> Record:
        """Returns what was measured until now."""
        own = self._settings
        return record_of(own.process, self._recorder, self._traffic(), own.children)

    def close(self) -> None:
        """Writes the last record and stops; may be called twice."""
        if self._ended.is_set():
            return
        self._ended.set()
        self._thread.join()
        self._write()
        self._show()
        if self._endpoint is not None:
            self._endpoint.close()

    def _go(self) -> None:
        while not self._ended.wait(WRITE_S):
            self._write()
            self._show()

    def _write(self) -> None:
        if self._settings.folder:
            self.record().write(Path(self._settings.folder) / f"{self._settings.member}.json")

    def _show(self) -> None:
        if self._settings.shows_table:
            for line in table(self.record(), self._settings.process):
                progress(line)


def watch(
    job: TreeJob, name: str, recorder: Recorder | None, traffic: Callable[[], Mapping[str, Traffic]]
) -> Watch | None:
    """Begins to watch a process of a tree, as the tree's job says; None where it wants none watched.

    Args:
        job: the tree's job.
        name: the process.
        recorder: what is told to it; None where nobody looks.
        traffic: gives the bytes of each of its links so far, by the node at the other end.

    Raises:
        InputError: its port cannot be had.
    """
    if recorder is None:
        return None
    is_node = job.root(name) is not None or name in job.workers
    settings = WatchSettings(
        process=name,
        member=job.member(name),
        folder=job.metrics_folder,
        host=job.metrics_host,
        port=job.metrics_port and job.metrics_port + job.members.index(job.member(name)),
        children=frozenset(job.children(name) if is_node else ()),
        shows_table=name == ROOT,
    )
    return Watch(settings, recorder, traffic)


@contextmanager
def watching(
    job: TreeJob, name: str, recorder: Recorder | None, traffic: Callable[[], Mapping[str, Traffic]]
) -> Iterator[None]:
    """Watches a process for the block; see `watch`."""
    watched = watch(job, name, recorder, traffic)
    try:
        yield
    finally:
        if watched is not None:
            watched.close()


def watch_worker(job: TreeJob, name: str, client: Client) -> Watch | None:
    """Begins to watch a worker; see `watch`.

    Args:
        job: the tree's job.
        name: the worker.
        client: its link, whose observer is what `recorder_of` gave.

    Raises:
        InputError: its port cannot be had.
    """
    recorder = client.observer if isinstance(client.observer, Recorder) else None
    return watch(job, name, recorder, lambda: {job.topology.site(name).name: client.traffic})


def recorder_of(job: TreeJob) -> Recorder | None:
    """Returns what a process of the tree is told to; None where nobody looks at it."""
    return Recorder() if job.metrics_folder or job.metrics_port else None


def measured_of(job: TreeJob, num_bytes: Mapping[str, tuple[int, int]]) -> Measured:
    """Reads the records of a tree's processes, for a report; those that left none are left out.

    Args:
        job: the tree's job, as the processes were given it.
        num_bytes: up and down, of whole frames, by the lower end of the link.

    Raises:
        ArtifactError: a file is not a record.
    """
    paths = [Path(job.metrics_folder) / f"{member}.json" for member in job.members]
    found = [Record.read(path) for path in paths if path.exists()]
    return Measured({record.process: record for record in found}, job.topology, num_bytes)
