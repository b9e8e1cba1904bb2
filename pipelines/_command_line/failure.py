"""Why a run failed, in one line."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from .options import in_pipeline_words
from .package import Package
from .results import find_run_folder

_ERROR = re.compile(r"(?:Error|Exception|^geokfp(?:\.\w+)+)$")
"""Ends the name of an error; those of this package may have other names, such as ProcessFailed."""


def describe_failure(package: Package, pipeline_root: Path, seconds: Mapping[str, float], log: Path) -> str:
    """Returns the step that failed and the cause that it recorded, options by the pipeline's names.

    Args:
        package: the pipeline.
        pipeline_root: kfp.local's folder of the run.
        seconds: times of the steps that ended, the failed one last.
        log: where everything printed lies, for a step that recorded nothing.
    """
    from geokfp.components._launch import read_failures  # late: it needs the extra `engine`

    run_folder = find_run_folder(pipeline_root)
    failures = read_failures(run_folder) if run_folder else []
    step = list(seconds)[-1] if seconds else "the run"
    if failures:
        failure = failures[-1]
        who = f"{failure.step} ({failure.replica})" if failure.replica else failure.step
        renamed = next((each.inputs.renamed for each in package.steps if each.name == step), {})
        cause = in_pipeline_words(failure.cause, renamed)
        return f"{who} failed: {_with_last_line(cause, failure.last_lines)}"
    why = last_error(log.read_text(encoding="utf-8").splitlines()) or "it did not say why"
    return f"{step} failed: {why}; see {log}"


def last_error(lines: Sequence[str]) -> str:
    """Returns the last error that a log tells, as its bare name and message; empty when it tells none."""
    stripped = (line.strip() for line in reversed(lines))
    told = (line for line in stripped if _ERROR.search(line.partition(":")[0]))
    return _without_module(_one_line(next(told, "")))


def _with_last_line(cause: str, last_lines: Sequence[str]) -> str:
    said = [_without_module(line.strip()) for line in last_lines if line.strip()]
    text = _one_line(cause)
    return f"{text}; it last printed: {said[-1]}" if said and said[-1] not in text else text


def _without_module(line: str) -> str:
    """Returns the last line of a traceback with the error's bare name: `ValueError: no`."""
    return re.sub(r"^(?:geokfp\.(?:\w+\.)*|(?:\w+\.)+(?=\w+(?:Error|Exception)\b))", "", line)


def _one_line(text: str) -> str:
    return " ".join(text.split())
