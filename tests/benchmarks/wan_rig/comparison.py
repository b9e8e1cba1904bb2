"""All trainings of a benchmark, the best learning rate of each system, and what may be said of speed."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from .errors import RigError
from .side_by_side import side_by_side
from .systems import CONTROL, SYSTEMS
from .trial import Measured

BASELINE = "mxnet"
TORCH_BASELINE = "torch_ddp"
LAN = "mxnet_lan"
UNTOLD = frozenset(name for name, system in SYSTEMS.items() if not system.shaped)
"""Systems of which no speed-up is told: they do not run over the links that the baseline runs over."""
PUBLISHED = ("iid", 0.95)
"""The case in which speed-ups are told although a site alone reaches the target: others publish it."""
BUSY = 0.6
"""Share of processor time from which on trainings side by side may hold each other up."""
TOLERANCE = 0.02
"""Share by which a system's own count of bytes may differ from the interfaces'."""
IN_TRANSIT_BYTES = 64 * 1024
"""What may differ beside that: bytes count as sent when they enter a socket's buffer, and cross later."""


@dataclass(frozen=True, slots=True)
class Run:
    """One training, or why there is none."""

    learning_rate: float
    """Of Adam."""
    number: int
    """Of this system and rate; also the seed."""
    measured: Measured | None
    """None when it failed."""
    error: str = ""
    """Why, in one line."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """A system with its best learning rate."""

    runs: tuple[Run, ...]
    """All of them, of every learning rate."""
    learning_rate: float | None
    """The best one; None when every training failed."""
    best: tuple[Measured, ...]
    """The trainings at that rate that did not fail."""

    @property
    def failures(self) -> list[Run]:
        """The runs that failed, of every learning rate."""
        return [run for run in self.runs if run.measured is None]

    @property
    def seconds_to_target(self) -> float | None:
        """Median; None unless every run at the best rate reached the target."""
        failed = any(run.learning_rate == self.learning_rate for run in self.failures)
        reached = bool(self.best) and not failed and all(measured.reached for measured in self.best)
        return median(measured.seconds for measured in self.best) if reached else None

    @property
    def typical(self) -> Measured | None:
        """The run at the best rate whose seconds are the median (of an even number, the slower)."""
        ordered = sorted(self.best, key=lambda measured: (not measured.reached, measured.seconds))
        return ordered[len(ordered) // 2] if ordered else None


@dataclass(frozen=True, slots=True)
class SpeedUps:
    """How many times sooner than the baseline systems reach the target, where that may be told."""

    ratios: Mapping[str, float]
    """By system; empty when it may not."""
    baselines: Mapping[str, str]
    """Which baseline each of them is told over: that of the same framework."""
    note: str
    """Why not, or what to keep in mind; empty when nothing."""


def repeat(
    rates: Sequence[float], num_runs: int, train: Callable[[float, int], Measured], at_once: int = 1
) -> Outcome:
    """Trains one system once with every learning rate, and again with the best.

    Args:
        rates: learning rates.
        num_runs: trainings with the best.
        train: takes a rate and the number of the run.
        at_once: trainings side by side.
    """

    def attempt(job: tuple[float, int]) -> Run:
        try:
            return Run(*job, train(*job))
        except RigError as error:
            return Run(*job, None, str(error))

    def ended(job: tuple[float, int], status: int | None) -> Run:
        return Run(*job, None, f"its process ended with status {status}")

    def tried(jobs: Sequence[tuple[float, int]]) -> list[Run]:
        return side_by_side(jobs, at_once, attempt, ended)

    runs = tried([(rate, 0) for rate in rates])
    best = outcome(runs).learning_rate
    if best is not None:
        runs += tried([(best, number) for number in range(1, num_runs)])
    return outcome(runs)


def outcome(runs: Sequence[Run]) -> Outcome:
    """Picks the best rate: the soonest at the target, or else the most accurate at the end.

    Of rates with unlike numbers of runs, those with most compare: one lucky run says less than the median.
    """
    tried = Counter(run.learning_rate for run in runs if run.measured)
    rates = [rate for rate, count in tried.items() if count == max(tried.values())]
    found = [
        Outcome(tuple(runs), rate, tuple(r.measured for r in runs if r.learning_rate == rate and r.measured))
        for rate in rates
    ]
    return min(found, key=_rank, default=Outcome(tuple(runs), None, ()))


def speed_ups(outcomes: Mapping[str, Outcome], split: str, target: float) -> SpeedUps:
    """Returns the speed-ups over the baselines, unless a site alone gets there too.

    Args:
        outcomes: by system, with the control.
        split: how the sites differ.
        target: accuracy to reach.
    """
    control = outcomes.get(CONTROL)
    if control is None or not control.best:
        return SpeedUps({}, {}, "no speed-ups: the control, each site alone, was not run")
    alone = any(measured.reached for measured in control.best)
    if alone and (split, target) != PUBLISHED:
        return SpeedUps({}, {}, f"no speed-ups: a site alone reaches {target:g} without the others")
    told = {name: baseline_of(name) for name in outcomes if name not in UNTOLD}
    times = {name: found.seconds_to_target for name, found in outcomes.items()}
    ratios = {
        name: times[base] / seconds
        for name, base in told.items()
        if name != base and times.get(base) and (seconds := times[name])
    }
    notes = [
        f"no speed-ups over {base}, which did not run, or did not reach {target:g}"
        for base in dict.fromkeys(told.values())
        if not times.get(base)
    ]
    if alone and ratios:
        notes.append(f"a site alone reaches {target:g} too: speed-ups only compare with figures published so")
    return SpeedUps(ratios, {name: told[name] for name in ratios}, "; ".join(notes))


def baseline_of(name: str) -> str:
    """Returns the baseline of the framework that a system trains with."""
    return TORCH_BASELINE if name.startswith("torch_") else BASELINE


def disagreements(outcomes: Mapping[str, Outcome]) -> list[str]:
    """Returns a line for each system whose own count of bytes is not the interfaces'."""
    lines = []
    for name, found in outcomes.items():
        for measured in found.best:
            own, seen = measured.wan_bytes_counted_by_engine, measured.wan_bytes
            if own is not None and abs(own - seen) > TOLERANCE * max(own, seen) + IN_TRANSIT_BYTES:
                lines.append(f"{name} counted {own:,} bytes itself where the interfaces counted {seen:,}")
    return lines


def too_busy(outcomes: Mapping[str, Outcome], at_once: Mapping[str, int]) -> list[str]:
    """Returns a line for each system whose trainings side by side may have waited for processors.

    Args:
        outcomes: by system.
        at_once: how many ran side by side, of those that did.
    """
    lines = []
    for name in set(outcomes) & set(at_once):
        most = max((measured.cores_busy for measured in outcomes[name].best), default=0.0)
        if most > BUSY:
            lines.append(f"{name} ran {at_once[name]} trainings at once, with cores {most:.0%} busy")
    return sorted(lines)


def with_control(names: Sequence[str]) -> list[str]:
    """Returns the systems to run: the control first, which says whether the others compare."""
    return [CONTROL, *(name for name in names if name != CONTROL)]


def _rank(found: Outcome) -> tuple[bool, float, float]:
    seconds = found.seconds_to_target
    accuracy = median(measured.final_accuracy for measured in found.best)
    return (seconds is None, seconds or 0.0, -accuracy)
