"""Names and labels of objects: a step that is run again in the same run finds those that it made before."""

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any

from ..._files import InputError
from ..pods import PodGroup, PodLaunch

LAUNCH_LABEL = "geokfp/launch"
"""Label with the launch's name; pods are selected by it."""
RUN_LABEL = "geokfp/run-id"
"""Label with `label_value` of the run's id; an object is adopted when it is the same."""
STEP_LABEL = "geokfp/step"
"""Label with the component's name."""
GROUP_LABEL = "geokfp/group"
"""Label of pods, and of objects that hold one group, with the group's name."""

_LABEL_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
_LONGEST_PREFIX = 29
_LONGEST_NAME = 63
_RANDOM_SUFFIX = 6


def launch_name(prefix: str, *, run_id: str, task: str, inputs: Mapping[str, Any]) -> str:
    """Returns the name of a launch: the same for the same arguments, another for any other.

    Args:
        prefix: what it begins with, such as the component's name; made a DNS label of 29 characters.
        run_id: the pipeline run.
        task: the step in that run.
        inputs: what the step was called with, as JSON takes it.

    Returns:
        The prefix, a hyphen and ten hexadecimal digits of the SHA-1 of the rest.

    Raises:
        InputError: no name can begin so.
    """
    start = re.sub(r"[^a-z0-9]+", "-", prefix.lower())[:_LONGEST_PREFIX].strip("-")
    if not start or not start[0].isalpha():
        raise InputError(f"launch prefix {prefix!r}: it must begin with a letter")
    told = json.dumps([run_id, task, inputs], sort_keys=True, separators=(",", ":"))
    return f"{start}-{hashlib.sha1(told.encode(), usedforsecurity=False).hexdigest()[:10]}"


def label_value(text: str) -> str:
    """Returns a text as a label's value: itself, or its SHA-1 where labels do not take it."""
    if _LABEL_VALUE.fullmatch(text):
        return text
    return hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()


def labels(launch: PodLaunch, group: PodGroup | None = None) -> dict[str, str]:
    """Returns the labels of an object of a launch, and of a group where it holds one."""
    own = {GROUP_LABEL: group.name} if group else {}
    return {
        "app.kubernetes.io/name": "geokfp",
        LAUNCH_LABEL: launch.name,
        RUN_LABEL: label_value(launch.run_id),
        STEP_LABEL: label_value(launch.step),
        **own,
    }


def group_name(launch: PodLaunch, group: PodGroup) -> str:
    """Returns the name of the object that holds one group."""
    return f"{launch.name}-{group.name}"


def opened_service_name(launch: PodLaunch, group: PodGroup) -> str:
    """Returns the name of the Service that opens a port of a group beyond the cluster."""
    return f"{group_name(launch, group)}-open"


def checked_hosts(hosts: dict[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    """Returns DNS names as they are.

    Raises:
        InputError: a pod's name with its random end would be no DNS label.
    """
    for group, names in hosts.items():
        longest = max((name.split(".")[0] for name in names), key=len)
        if len(longest) + _RANDOM_SUFFIX > _LONGEST_NAME:
            raise InputError(
                f"pod group {group!r}: its pods would be named {longest}-xxxxx, "
                f"allowed: {_LONGEST_NAME} characters; a shorter name is needed"
            )
    return hosts
