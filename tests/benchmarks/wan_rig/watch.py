"""Follows the records of a training under way, has them judged, and says when it is over."""

import time
from dataclasses import dataclass

from .curve import Point, curve, reached
from .errors import TrialFailed
from .judge import Judge
from .network import Network
from .processes import Processes
from .records import Follower, Row
from .systems import Setting, System

POLL_S = 0.01
START_S = 300.0
"""Seconds until every site has its first snapshot: imports, and the initial weights over slow links."""
JUDGING_S = 120.0
"""Seconds that judging one snapshot may take when the training is over."""
BURSTS_EVERY_S = 5.0
"""Seconds of training between two bursts of judging; the first come before any."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """When a training ends."""

    target: float
    """Accuracy whose first reach is measured."""
    seconds: float
    """Of training, after which it is stopped."""
    to_the_end: bool = False
    """Whether it goes on after the target, to the last step or second."""


class Bursts:
    """Lets snapshots be judged in bursts, so that the seconds between belong to the training alone.

    Even a process that gets only the time which nobody wants takes caches and memory from the others: a
    training that is there before the first burst is not touched by any.
    """

    def __init__(self) -> None:
        self._until = 0
        self._pause_over: float | None = None

    def released(self, now: float, judged: int, taken: int) -> int:
        """Returns how many snapshots may be judged, from the first one on.

        Args:
            now: moment.
            judged: how many have been.
            taken: how many there are.
        """
        if judged < self._until:
            return self._until
        if self._pause_over is None:
            self._pause_over = now + BURSTS_EVERY_S
        if now >= self._pause_over:
            self._until, self._pause_over = taken, None
        return self._until


class Watch:
    """One training.

    Args:
        system: what trains.
        setting: the trial's.
        judge: what tells accuracies.
        limits: when to stop.
    """

    def __init__(self, system: System, setting: Setting, judge: Judge, limits: Limits) -> None:
        self._system = system
        self._limits = limits
        self._sites = system.recording(setting.sites)
        self._followers = {site: Follower(setting.records / site) for site in self._sites}
        self._judge = judge
        self._bursts = Bursts()
        self._submitted = False
        self._points: list[Point] = []
        self._accuracies: list[float] = []
        self.rows: list[Row] = []

    @property
    def began(self) -> float:
        """Moment at which the clock started; sites leave the barrier together."""
        return min(row.moment for row in self.rows if row.step == 0)

    @property
    def points(self) -> list[Point]:
        """Accuracy over time as far as it is judged; it ends at the target, unless the training goes on."""
        found = reached(self._points, self._limits.target)
        if found is None or self._limits.to_the_end:
            return self._points
        return self._points[: self._points.index(found) + 1]

    def until_started(self, processes: Processes) -> None:
        """Returns when the clock of all sites has started.

        Raises:
            TrialFailed: a process ended badly, or not all sites started.
        """
        start_by = time.monotonic() + START_S
        while not self._all_started():
            ended = processes.all_finished()
            self._turn()
            if ended and not self._all_started():
                raise TrialFailed(f"not all of {', '.join(self._sites)} left records")
            if time.monotonic() > start_by:
                raise TrialFailed(f"not all of {', '.join(self._sites)} had started after {START_S:g} s")
            time.sleep(POLL_S)

    def until_over(self, built: Network, processes: Processes) -> None:
        """Returns when the training, which has started, has ended or has reached what it shall.

        Raises:
            TrialFailed: a process ended badly.
        """
        built.start_schedule(self.began)
        while not processes.all_finished():
            self._turn()
            if self._is_there() or time.monotonic() > self.began + self._limits.seconds:
                return
            time.sleep(POLL_S)
        self._turn()

    def until_judged(self) -> None:
        """Returns when all snapshots are judged that matter.

        Raises:
            TrialFailed: the judge takes too long.
        """
        known, deadline = -1, 0.0
        while not self._is_there() and len(self._accuracies) < len(self.rows):
            if len(self._accuracies) > known:
                known, deadline = len(self._accuracies), time.monotonic() + JUDGING_S
            if time.monotonic() > deadline:
                raise TrialFailed(f"a snapshot was not judged within {JUDGING_S:g} s")
            self._judge_next()
            time.sleep(POLL_S)

    def _turn(self) -> None:
        """Reads new records, and lets the judge work where it may."""
        for follower in self._followers.values():
            self.rows += follower.new_rows()
        judged, taken = len(self._accuracies), len(self.rows)
        if self._all_started() and judged < self._bursts.released(time.monotonic(), judged, taken):
            self._judge_next()

    def _judge_next(self) -> None:
        """Keeps the judge busy with one snapshot at a time."""
        if len(self._accuracies) == len(self.rows):
            return
        row = self.rows[len(self._accuracies)]
        path = self._followers[row.site].path(row)
        if not self._submitted:
            self._judge.submit(path)
            self._submitted = True
        elif (accuracy := self._judge.accuracy(path)) is not None:
            self._submitted = False
            self._accuracies.append(accuracy)
            judged = zip(self.rows, self._accuracies, strict=False)
            self._points = curve(judged, len(self._sites), self._system.judged)

    def _all_started(self) -> bool:
        return {row.site for row in self.rows} == set(self._sites)

    def _is_there(self) -> bool:
        return not self._limits.to_the_end and reached(self._points, self._limits.target) is not None
