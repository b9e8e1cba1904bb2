"""Windows of time, and the URIs of their tables. Pure: the present is an argument.

A window ends at the moment that its run is for and is named by its start, as intervals of schedulers are:
the run of midnight is about the day that has ended then.
"""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from .._files import InputError

_FIELDS = "YmdHMSjGV"
_PERCENT = re.compile(r"%(%|[0-9A-F]{2}|.?)")
_PLACEHOLDER = ("{{$", "[[")
"""How values begin that a scheduler should have filled in, and has not, as when a pipeline runs locally."""


@dataclass(frozen=True, slots=True)
class Window:
    """What a run is about.

    Attributes:
        start: the first moment of the window, in UTC.
        end: the first moment after it.
    """

    start: datetime
    end: datetime

    @property
    def name(self) -> str:
        """Its start, such as `2026-11-29T00:00:00Z`; later windows' names are greater."""
        return self.start.strftime("%Y-%m-%dT%H:%M:%SZ")


def window_of(time: str, scheduled_time: str, window_s: int, now: datetime) -> Window:
    """Returns a run's window.

    Args:
        time: the moment that the user gave, or empty.
        scheduled_time: the moment that the scheduler gave, or empty.
        window_s: length in seconds.
        now: the present, where neither is known.
    """
    given = parse_moment("time", time) or parse_moment("scheduled_time", scheduled_time)
    end = (given or now.astimezone(UTC)).replace(microsecond=0)
    return Window(end - timedelta(seconds=window_s), end)


def parse_moment(option: str, text: str) -> datetime | None:
    """Returns a moment in UTC; None of an empty text and of a placeholder.

    Args:
        option: what it is called.
        text: ISO 8601, in UTC where it names no zone, or whole seconds since 1970; or fourteen digits, as KFP
            writes `[[ScheduledTime]]`.

    Raises:
        InputError: it is neither.
    """
    text = text.strip()
    if not text or text.startswith(_PLACEHOLDER):
        return None
    allowed = "a moment of the years 1970 to 9998 such as 2026-11-30T06:00Z, or seconds since 1970"
    try:
        if text.isdecimal() and len(text) == len("20261130060000"):
            found = datetime.strptime(text, "%Y%m%d%H%M%S").replace(tzinfo=UTC)
        elif text.isdecimal() and len(text) > 8:
            found = datetime.fromtimestamp(int(text), UTC)
        else:
            found = datetime.fromisoformat(text)
            found = found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
    except (ValueError, OverflowError, OSError) as error:
        raise InputError(f"{option} {text!r}: must be {allowed}") from error
    if not 1970 <= found.year <= 9998:
        raise InputError(f"{option} {text!r}: must be {allowed}")
    return found


def check_pattern(option: str, pattern: str) -> None:
    """Checks the fields of a URI.

    Raises:
        InputError: a field that is not known.
    """
    for found in _PERCENT.finditer(pattern):
        if not _is_known(found[1]):
            allowed = ", ".join(f"%{name}" for name in _FIELDS)
            raise InputError(
                f"{option} {pattern!r}: {found[0]!r} is no field; "
                f"allowed: {allowed}, and %% for a per cent sign"
            )


def fill(pattern: str, start: datetime) -> str:
    """Returns a URI with a window's start in the place of its fields; `%20` and the like stay.

    Args:
        pattern: the URI, as `check_pattern` lets it pass.
        start: the start.
    """

    def put(found: re.Match[str]) -> str:
        name = found[1]
        if name == "%":
            return "%"
        return start.strftime(f"%{name}") if name in _FIELDS else found[0]

    return _PERCENT.sub(put, pattern)


def _is_known(name: str) -> bool:
    return name == "%" or len(name) == 2 or (name != "" and name in _FIELDS)
