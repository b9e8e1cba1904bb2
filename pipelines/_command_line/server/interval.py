"""Intervals as people write them, such as `6h` or `1d12h`. Knows nothing of schedules."""

import re

from ..errors import UsageError

_SECONDS = {"w": 604_800, "d": 86_400, "h": 3_600, "m": 60, "s": 1}
_INTERVAL = re.compile("".join(rf"(?:(\d{{1,10}}){unit})?" for unit in _SECONDS), re.ASCII)
_LONGEST_WEEKS = 5_000  # KFP's scheduler counts in nanoseconds, which reach for 292 years


def seconds_of(text: str) -> int:
    """Returns the seconds of an interval.

    Args:
        text: numbers with units, the greatest unit first: w, d, h, m, s.

    Raises:
        UsageError: it is not of this form, is less than a second, or longer than KFP's scheduler can count.
    """
    match = _INTERVAL.fullmatch(text.strip().lower())
    total = (
        0
        if match is None
        else sum(
            int(number or 0) * seconds
            for number, seconds in zip(match.groups(), _SECONDS.values(), strict=True)
        )
    )
    if not 1 <= total <= _LONGEST_WEEKS * _SECONDS["w"]:
        raise UsageError(
            f"--interval {text}: allowed: numbers with w, d, h, m or s, such as 6h or 1d12h, 1s to "
            f"{_LONGEST_WEEKS}w"
        )
    return total


def interval_text(seconds: int) -> str:
    """Returns seconds as `seconds_of` reads them."""
    parts = []
    for unit, size in _SECONDS.items():
        count, seconds = divmod(seconds, size)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts)
