"""Texts of a parameter that KFP fills in when a run starts, such as `[[ScheduledTime.2006-01-02]]`.

KFP puts them in top-level text parameters only, from 2.16 on, and leaves what it does not know as it is: a
step would then look for a file of that name.
"""

import re
from collections.abc import Mapping
from typing import Any

from ..errors import UsageError
from ..package import Package

_MACRO = re.compile(
    r"\[\[(?P<name>\s*[^\W\d][\w\s:-]*)(?:\.(?P<layout>[^\]]*))?\]\]|\{\{(?P<expression>\s*\$\.?[^}]*)\}\}"
)
_TIMES = ("CurrentTime", "ScheduledTime")
_EXPRESSION = re.compile(
    r"\$\.(?P<name>scheduledTime|currentTime)\.strftime\((?P<quote>['\"])(?P<format>.+)(?P=quote)\)"
)
_GO_PARTS = re.compile(r"2006|06|Jan(?:uary)?|Mon(?:day)?|01|02|15|03|04|05|PM|MST|Z0700|-0700|[1-5]")
_LAYOUT = "a layout of Go's, which writes 2 January 2006 15:04:05 as the time should look, such as 2006-01-02"
_ALLOWED = (
    "[[ScheduledTime]], [[CurrentTime]], each perhaps with a layout as [[ScheduledTime.2006-01-02]], "
    "[[RunUUID]], {{$.scheduledTime.strftime('%Y-%m-%d')}} and the same of currentTime"
)


def check_macros(package: Package, arguments: Mapping[str, Any], *, scheduled: bool) -> frozenset[str]:
    """Checks the macros in the values of a run.

    Args:
        package: the pipeline.
        arguments: values by parameter.
        scheduled: whether a schedule starts the run; otherwise there is no scheduled time.

    Returns:
        The parameters whose values are known when the run starts.

    Raises:
        UsageError: a macro that KFP does not know, or one in a list or mapping, where it does not look.
    """
    found = set()
    for name, value in arguments.items():
        if isinstance(value, str):
            for match in _MACRO.finditer(value):
                _check(f"{name}={value}", match, scheduled=scheduled)
                found.add(name)
        elif hidden := _MACRO.search(str(value)):
            kind = package.parameters[name].type
            raise UsageError(f"{name}={value}: {hidden[0]} in a {kind}; allowed: in text parameters only")
    return frozenset(found)


def _check(shown: str, match: re.Match[str], *, scheduled: bool) -> None:
    name = match["name"] or _check_expression(shown, match)
    if match["name"] == "Index":
        raise UsageError(
            f"{shown}: [[Index]] is not filled in for pipelines of version 2; allowed: {_ALLOWED}"
        )
    if name not in (*_TIMES, "RunUUID"):
        raise UsageError(f"{shown}: {match[0]} is no macro; allowed: {_ALLOWED}")
    if name == "ScheduledTime" and not scheduled:
        raise UsageError(
            f"{shown}: {match[0]} in a run that no schedule starts; allowed: in `geokfp schedule`"
        )
    layout = match["layout"]
    if layout is not None and (name == "RunUUID" or not _is_layout(layout)):
        raise UsageError(f"{shown}: {match[0]}; allowed: {_LAYOUT if name in _TIMES else '[[RunUUID]]'}")


def _check_expression(shown: str, match: re.Match[str]) -> str:
    found = _EXPRESSION.fullmatch(match["expression"])
    if found is None:
        raise UsageError(f"{shown}: {match[0]} is no macro; allowed: {_ALLOWED}")
    return found["name"][0].upper() + found["name"][1:]


def _is_layout(layout: str) -> bool:
    rest = _GO_PARTS.sub("", layout)
    return rest != layout and not re.search(
        r"[%0-9]|([A-Za-z])\1", rest
    )  # %Y and YYYY are no layouts of Go's
