"""Cron expressions as KFP reads them: six fields, seconds first, evaluated in UTC by default.

Five fields are what cron(5) and people write. Both are checked field by field, as an expression that KFP's
scheduler cannot read becomes a schedule that never runs. Knows nothing of schedules or of time.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ..errors import UsageError

_MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_DAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
_LONGEST_MONTH = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_SEVEN = re.compile(r"(?<!/)\b0*7\b|-SUN\b", re.IGNORECASE)
_PART = re.compile(r"(?P<first>\*|\?|\w+)(?:-(?P<last>\w+))?(?:/(?P<step>\w+))?", re.ASCII)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Field:
    """One field of an expression."""

    name: str
    """As messages name it."""
    low: int
    """Least value."""
    high: int
    """Greatest value that may be written."""
    names: Sequence[str] = ()
    """Names of the values from `low` on."""
    is_day: bool = False
    """Whether `?` may stand for `*`."""

    @property
    def greatest(self) -> int:
        """Greatest value that `*` stands for: day of week 7 is Sunday again."""
        return self.high - (self.names is _DAYS)


_SECOND = _Field(name="second", low=0, high=59)
_FIVE = (
    _Field(name="minute", low=0, high=59),
    _Field(name="hour", low=0, high=23),
    _Field(name="day of month", low=1, high=31, is_day=True),
    _Field(name="month", low=1, high=12, names=_MONTHS),
    _Field(name="day of week", low=0, high=7, names=_DAYS, is_day=True),
)


def six_fields(expression: str) -> str:
    """Returns a cron expression with the six fields that KFP reads.

    Args:
        expression: five fields (minute, hour, day of month, month, day of week), or six, the second first.

    Raises:
        UsageError: a field that KFP would not read, or a date that no year has; names the field.
    """
    texts = expression.split()
    if len(texts) not in (5, 6):
        raise UsageError(
            f"--cron {expression!r}: has {len(texts)} fields; allowed: 5 (minute, hour, day of month, month, "
            "day of week), or 6 with the second first"
        )
    fields = _FIVE if len(texts) == 5 else (_SECOND, *_FIVE)
    values = [_values(field, text, expression) for field, text in zip(fields, texts, strict=True)]
    _check_date(values[-3], values[-2], texts, expression)
    texts[-1] = _without_seven(texts[-1], values[-1])
    return " ".join(texts if len(texts) == 6 else ["0", *texts])


def _values(field: _Field, text: str, expression: str) -> set[int]:
    return {value for part in text.split(",") for value in _part(field, part, expression)}


def _part(field: _Field, part: str, expression: str) -> range:
    match = _PART.fullmatch(part)
    if match is None or (match["first"] in ("*", "?") and match["last"]):
        raise _wrong(field, part, expression, "a value, a range a-b, * or one of them with /step, by commas")
    if match["first"] == "?" and not field.is_day:
        raise _wrong(field, part, expression, "? only in the two fields of days")
    step = _step(field, match["step"], part, expression)
    if match["first"] in ("*", "?"):
        return range(field.low, field.greatest + 1, step)
    first = _value(field, match["first"], part, expression)
    if match["last"] is None:
        return range(first, max(first, field.greatest if match["step"] else first) + 1, step)
    last = _value(field, match["last"], part, expression)
    if match["last"].upper() == "SUN" and first > 0:
        last = field.high
    if last < first:
        raise _wrong(field, part, expression, f"a range that rises, as {last}-{first}")
    return range(first, last + 1, step)


def _step(field: _Field, text: str | None, part: str, expression: str) -> int:
    longest = field.greatest - field.low + 1  # a longer one would start at the first value alone
    if text is not None and not (_is_short(text) and 1 <= int(text) <= longest):
        raise _wrong(field, part, expression, f"a step of 1 to {longest}")
    return int(text or 1)


def _is_short(text: str) -> bool:
    return text.isdecimal() and len(text) < 9  # beyond that lies what the scheduler cannot count


def _value(field: _Field, text: str, part: str, expression: str) -> int:
    if text.upper() in field.names:
        return field.names.index(text.upper()) + field.low
    if _is_short(text) and field.low <= int(text) <= field.high:
        return int(text)
    names = f", or {field.names[0]} to {field.names[-1]}" if field.names else ""
    raise _wrong(field, part, expression, f"{field.low} to {field.high}{names}")


def _wrong(field: _Field, part: str, expression: str, allowed: str) -> UsageError:
    return UsageError(f"--cron {expression!r}: {field.name} {part!r}; allowed: {allowed}")


def _check_date(days: set[int], months: set[int], texts: Sequence[str], expression: str) -> None:
    """A day of the week beside a day of the month is enough to run on: cron runs on either."""
    any_weekday = texts[-1][0] in "*?"
    if any_weekday and min(days) > max(_LONGEST_MONTH[month - 1] for month in months):
        raise UsageError(
            f"--cron {expression!r}: no month of {texts[-2]!r} has a day {min(days)}; allowed: real dates"
        )


def _without_seven(text: str, days: set[int]) -> str:
    """KFP has Sunday as 0 only: a field that says 7, or ends a range with Sunday, is spelt out."""
    return ",".join(map(str, sorted({day % 7 for day in days}))) if _SEVEN.search(text) else text
