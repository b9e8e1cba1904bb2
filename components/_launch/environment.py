"""The one place that reads the environment of a process."""

import os
import time

STEP_START = "GEOKFP_STEP_START"
"""Wall-clock seconds at which the step began; set for every process that a step starts."""

_OWN_START = time.time()


def step_start() -> float:
    """Returns the wall-clock time (seconds) at which this process's step began."""
    return float(os.environ.get(STEP_START, _OWN_START))


def inherited() -> dict[str, str]:
    """Returns what a process started by this one inherits: all of the environment, and the step's start."""
    return {**os.environ, STEP_START: str(step_start())}


def apply(variables: dict[str, str]) -> None:
    """Sets variables in this process, before the modules that read them are imported."""
    os.environ.update(variables)
