"""What can be chosen about a window, a comparison and a promotion."""

import math
from dataclasses import dataclass

from .._files import InputError
from .windows import check_pattern, parse_moment

METRICS = ("accuracy", "macro_f1")
LONGEST_WINDOW_S = 366 * 86400


@dataclass(frozen=True, kw_only=True, slots=True)
class WindowConfig:
    """Which window of data a run is about, and where the champions are.

    Raises:
        InputError: a value that is not allowed; the message names the option, the value and what is.
    """

    champions: str = ""
    """Folder of the champions (path on a volume that stays, or URI); it must be given."""
    nodes: str = ""
    """URI of the window's nodes, with fields of its start: `%Y` `%m` `%d` `%H` `%M` `%S` `%j` `%G` `%V`."""
    edges: str = ""
    """URI of the window's edges, with the same fields."""
    features: str = ""
    """URI of the window's features, with the same fields; empty for none."""
    time: str = ""
    """Moment that the run is for, as `2026-11-30T06:00Z` or seconds since 1970; empty takes
    `scheduled_time`."""
    scheduled_time: str = ""
    """Moment that the scheduler gave; empty, or a placeholder that nothing has filled in: the present."""
    window_s: int = 86400
    """Length of the window in seconds; it ends at the moment that the run is for."""
    warm_start: bool = True
    """Whether the training goes on from the champion, where there is one."""

    def __post_init__(self) -> None:
        """Checks the values."""
        check_champions(self.champions)
        for name in ("nodes", "edges", "features"):
            check_pattern(name, getattr(self, name))
        for name in ("time", "scheduled_time"):
            parse_moment(name, getattr(self, name))
        fits = 0 <= self.window_s <= LONGEST_WINDOW_S
        check("window_s", self.window_s, fits, f"0 to {LONGEST_WINDOW_S}")


@dataclass(frozen=True, kw_only=True, slots=True)
class Criterion:
    """When a challenger wins.

    Raises:
        InputError: a value that is not allowed; the message names the option, the value and what is.
    """

    metric: str = "accuracy"
    """What decides: `accuracy`, or `macro_f1` (the mean of the classes' F1)."""
    margin: float = 0.0
    """By how much the challenger's score must be above the champion's; equal scores keep the champion."""
    least_score: float = 0.0
    """Score below which no challenger wins, not even the first."""

    def __post_init__(self) -> None:
        """Checks the values."""
        check("metric", self.metric, self.metric in METRICS, f"one of {', '.join(METRICS)}")
        check("margin", self.margin, 0 <= self.margin < 1, "at least 0 and below 1")
        check("least_score", self.least_score, 0 <= self.least_score <= 1, "0 to 1")


@dataclass(frozen=True, kw_only=True, slots=True)
class EvaluationConfig(Criterion):
    """What a challenger is compared with, and when it wins.

    Raises:
        InputError: a value that is not allowed; the message names the option, the value and what is.
    """

    champion: str = ""
    """Champion to compare with, the path or URI of its trained GNN; empty where there is none yet."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PromotionConfig(Criterion):
    """How a challenger that has won becomes the champion.

    Raises:
        InputError: a value that is not allowed; the message names the option, the value and what is.
    """

    champions: str = ""
    """Folder of the champions (path on a volume that stays, or URI); it must be given."""
    window: str = ""
    """Start of the challenger's window, as `open_window` gives it."""

    def __post_init__(self) -> None:
        """Checks the values."""
        Criterion.__post_init__(self)
        check_champions(self.champions)
        start = parse_moment("window", self.window)
        check("window", self.window, start is not None, "a start such as 2026-11-30T00:00:00Z")


def check_champions(champions: str) -> None:
    """Checks that a folder of champions is named.

    Raises:
        InputError: it is not.
    """
    check("champions", champions, bool(champions.strip()), "the path or URI of a folder that stays")


def check(option: str, value: object, is_allowed: bool, allowed: str) -> None:
    """Checks one value.

    Raises:
        InputError: it is not allowed.
    """
    number = isinstance(value, float) and not math.isfinite(value)
    if number or not is_allowed:
        raise InputError(f"{option} {value!r}: must be {allowed}")
