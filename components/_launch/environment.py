"""The one place that reads the environment of a process."""

import os
import sys
import time
from collections.abc import Mapping

STEP_START = "GEOKFP_STEP_START"
"""Wall-clock seconds at which the step began; set for every process that a step starts."""

JOB_MARK = "GEOKFP_JOB_MARK"
"""What all processes of one job have in common, down to the children of their children."""

_OWN_START = time.time()


def step_start() -> float:
    """Returns the wall-clock time (seconds) at which this process's step began."""
    return float(os.environ.get(STEP_START, _OWN_START))


def job_mark() -> str:
    """Returns the mark of the job that this process belongs to, or ""."""
    return os.environ.get(JOB_MARK, "")


def variables(*names: str) -> dict[str, str]:
    """Returns variables by name; "" for one that is not set."""
    return {name: os.environ.get(name, "") for name in names}


def inherited(mark: str) -> dict[str, str]:
    """Returns what a job's processes inherit: this one's environment, the step's start, the mark."""
    return {**os.environ, STEP_START: str(step_start()), JOB_MARK: mark}


def apply(variables: Mapping[str, str]) -> None:
    """Sets variables in this process, before the modules that read them are imported.

    `PYTHONPATH` takes effect as well: its folders go to the front of the module search path.
    """
    os.environ.update(variables)
    folders = [folder for folder in variables.get("PYTHONPATH", "").split(os.pathsep) if folder]
    sys.path[:0] = [folder for folder in folders if folder not in sys.path]
