"""A process of its own that runs one compiled pipeline with `kfp.local`, every step as a subprocess.

Started by `supervision.py`, with its request as JSON on stdin. What kfp and the steps print goes to stdout,
where the supervisor reads it. Nothing outlives this process: when it is told to end, or its parent is gone,
it ends all that it started.
"""

import ctypes
import json
import os
import signal
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

_PR_SET_PDEATHSIG = 1
_TIMES = ("{{$.pipeline_job_schedule_time_utc}}", "{{$.pipeline_job_create_time_utc}}")


def end_with_parent() -> None:
    """Makes SIGTERM, and the parent's death, end the whole process group that this process leads.

    The leader itself stays until its step is gone, so that nothing is left that no one has waited for.
    """

    def _forward(_signal: int, _frame: object) -> None:
        signal.signal(signal.SIGTERM, lambda _signal, _frame: None)
        os.killpg(os.getpid(), signal.SIGTERM)

    signal.signal(signal.SIGTERM, _forward)
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def run_package(package: Path, arguments: dict[str, Any], pipeline_root: Path) -> None:
    """Runs a compiled pipeline in steps' subprocesses of this Python.

    Args:
        package: the compiled YAML.
        arguments: values by parameter.
        pipeline_root: where kfp.local puts the steps' outputs.

    Raises:
        RuntimeError: a step failed; kfp names it.
    """
    from kfp import components, local

    text = _without_retries(with_times(package.read_text(encoding="utf-8"), datetime.now(UTC)))
    component: Any = components.load_component_from_text(text)
    local.init(
        runner=local.SubprocessRunner(use_venv=False),
        pipeline_root=str(pipeline_root),
        workspace_root=str(
            pipeline_root / "workspace"
        ),  # kfp's default cannot be used, its path is replaced twice
    )
    component(**arguments)


def with_times(text: str, now: datetime) -> str:
    """Fills in the times that a scheduler gives each run, for which kfp.local has no word: the present.

    Args:
        text: the compiled YAML.
        now: the present.
    """
    for placeholder in _TIMES:
        text = text.replace(placeholder, now.isoformat(timespec="seconds"))
    return text


def _without_retries(package: str) -> str:
    """A retry is for a lost pod; here it would only repeat the error, half a minute later."""
    documents = list(yaml.safe_load_all(package))
    specs = (documents[0]["root"], *documents[0].get("components", {}).values())
    for task in (task for spec in specs for task in spec.get("dag", {}).get("tasks", {}).values()):
        task.pop("retryPolicy", None)
    return yaml.safe_dump_all(documents)


def main() -> int:
    """Reads the request from stdin and runs it; returns the exit status."""
    end_with_parent()
    request = json.load(sys.stdin)
    try:
        run_package(Path(request["package"]), request["arguments"], Path(request["pipeline_root"]))
    except RuntimeError as error:  # what kfp raises when a step has failed; the step said why
        print(error, flush=True)  # noqa: T201
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
