"""Intervals as people write them, such as `6h` or `1d12h`. Knows nothing of schedules."""

import re

from ..errors import UsageError

_SECONDS = {"w": 604_800, "d": 86_400, "h": 3_600, "m": 60, "s": 1}
_INTERVAL = re.compile("".join(rf"(?:(\d+){unit})?" for unit in _SECONDS), re.ASCII)


def seconds_of(text: str) -> int:
    """Returns the seconds of an interval.

    Args:
        text: numbers with units, the greatest unit first: w, d, h, m, s.

    Raises:
        UsageError: it is not of this form, or is less than a second.
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
    if total < 1:
        raise UsageError(f"--interval {text}: allowed: numbers with w, d, h, m or s, such as 6h or 1d12h")
    return total


def interval_text(seconds: int) -> str:
    """Returns seconds as `seconds_of` reads them."""
    parts = []
    for unit, size in _SECONDS.items():
        count, seconds = divmod(seconds, size)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts)
