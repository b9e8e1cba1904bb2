"""Runs launches on clusters to their end, all together: what a step calls.

Each cluster has a thread (`one_cluster.py`) and more for its watches and logs; what they have to tell reaches
the caller in its own thread, one after the other. The first failure ends all. SIGTERM is `termination.py`'s.
"""

import queue
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from .api_errors import Stopped
from .cluster import Cluster, Placed, WatchSettings
from .errors import ProcessFailed
from .one_cluster import ClusterRun, Ears
from .progress import parse_progress
from .termination import Termination
from .verdict import BadEnd, root_cause

__all__ = ["Cluster", "Placed", "WatchSettings", "run_on_clusters"]

MAX_WAITING_LINES = 10_000
"""Of logs that the caller has not taken yet; then reading them waits."""
TURN_S = 0.5
"""Between two looks at whether something is due."""

_Told = Callable[[], None]


def run_on_clusters(
    placed: Sequence[Placed],
    *,
    on_line: Callable[[str, str], None],
    beat: Callable[[], None],
    on_created: Callable[[dict[str, Any]], None] = lambda reference: None,  # noqa: ARG005
    settings: WatchSettings | None = None,
) -> None:
    """Runs launches to their end; what they created is deleted when this returns or raises.

    SIGTERM deletes it too, and ends this process with status 143, when called in the main thread.

    Args:
        placed: what to run, and where; at least one.
        on_line: called with a replica's name (`group/index`, with several clusters `cluster/group/index`)
            and a line of its log, of which progress comes as the message alone; or with a launch's name and
            what happens to it.
        beat: called again and again while the run lasts.
        on_created: called with the reference of a launch's job, as JSON, before that is waited for.
        settings: how patiently; by default `WatchSettings()`.

    Raises:
        ProcessFailed: a replica failed, or a cluster did (`ClusterFailed`).
        InputError: the credentials of a cluster are not there; nothing was started.
    """
    settings = settings or WatchSettings()
    told: queue.Queue[_Told] = queue.Queue(MAX_WAITING_LINES)
    ears = Ears(
        line=lambda name, text: told.put(lambda: on_line(name, parse_progress(text) or text)),
        created=lambda reference: told.put(lambda: on_created(reference)),
    )
    runs = [ClusterRun(one, settings, ears, prefixed=len(placed) > 1) for one in placed]
    with Termination([run.deletion for run in runs], within_s=settings.termination_s):
        _Together(runs, told, beat, settings).run()


class _Together:
    """The runs of all clusters."""

    def __init__(
        self,
        runs: Sequence[ClusterRun],
        told: "queue.Queue[_Told]",
        beat: Callable[[], None],
        settings: WatchSettings,
    ) -> None:
        self._runs = runs
        self._told = told
        self._beat = beat
        self._settings = settings
        self._beat_due_s = time.monotonic()
        self._ends: list[ProcessFailed] = []
        self._futures: list[Future[None]] = []

    def run(self) -> None:
        """Starts all, and waits for all; raises the first failure that no other explains."""
        with ThreadPoolExecutor(len(self._runs), "cluster") as executor:
            self._futures = [executor.submit(run.run) for run in self._runs]
            try:
                self._wait()
            finally:
                for run in self._runs:
                    run.end()
                self._finish()
        self._collect()
        if self._ends:
            end = root_cause([BadEnd(str(number), error.cause) for number, error in enumerate(self._ends)])
            raise self._ends[int(end.name)]

    def _wait(self) -> None:
        """Returns when all have ended well, or the cause of an end is known."""
        decided_s: float | None = None
        while not all(future.done() for future in self._futures):
            self._turn()
            self._collect()
            if self._ends and decided_s is None:
                secondary = all(BadEnd("", error.cause).is_secondary() for error in self._ends)
                decided_s = time.monotonic() + (self._settings.others_s if secondary else 0.0)
            if decided_s is not None and time.monotonic() >= decided_s:
                return

    def _turn(self) -> None:
        if time.monotonic() >= self._beat_due_s:
            self._beat()
            self._beat_due_s = time.monotonic() + self._settings.beat_s
        try:
            tell = self._told.get(timeout=min(TURN_S, self._settings.beat_s, self._settings.poll_s))
        except queue.Empty:
            return
        tell()

    def _collect(self) -> None:
        """Takes the errors of runs that have ended; what is no failure of a launch is raised."""
        errors = [future.exception() for future in self._futures if future.done()]
        for error in errors:
            if isinstance(error, ProcessFailed) and error not in self._ends:
                self._ends.append(error)
            elif error is not None and not isinstance(error, ProcessFailed | Stopped):
                raise error

    def _finish(self) -> None:
        """Tells the rest while the runs free what they created; a caller that takes no more ends no wait."""
        try:
            self._take_rest(lambda tell: tell())
        finally:
            self._take_rest(lambda tell: None)  # noqa: ARG005

    def _take_rest(self, take: Callable[[_Told], None]) -> None:
        while True:
            done = all(future.done() for future in self._futures)
            try:
                take(self._told.get(timeout=0.0 if done else 0.1))
            except queue.Empty:
                if done:
                    return
