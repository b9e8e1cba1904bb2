"""What a run left in kfp.local's folder, gathered into the results of the output folder.

Reads only files: each step's `executor_output.json` (kfp's record of what the step returned).
"""

import json
import math
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .output_folder import write_json
from .package import Package, Step, step_name

_RECORD = "executor_output.json"


@dataclass(frozen=True, kw_only=True, slots=True)
class StepResult:
    """What one step left."""

    step: Step
    """The step."""
    folder: Path
    """Its outputs: one file or folder an artifact or parameter."""
    metrics: Mapping[str, float]
    """Scalar metrics."""


def read_steps(package: Package, pipeline_root: Path) -> list[StepResult]:
    """Returns the results of the steps that ran to their end, in the pipeline's order.

    Tasks whose condition did not hold are not among them, nor those inside loops and nested pipelines; files
    of these `stage` keeps all the same.
    """
    run_folder = find_run_folder(pipeline_root)
    if run_folder is None:
        return []
    planned = ((step, run_folder / step.folder) for step in package.steps)
    return [_read_step(step, folder) for step, folder in planned if (folder / _RECORD).is_file()]


def find_run_folder(pipeline_root: Path) -> Path | None:
    """Returns the folder that kfp.local made for the run: `<pipeline>-<time>`; None before the first step."""
    folders = [entry for entry in pipeline_root.iterdir() if entry.is_dir() and entry.name != "workspace"]
    return folders[0] if folders else None


def _read_step(step: Step, folder: Path) -> StepResult:
    record = json.loads((folder / _RECORD).read_text(encoding="utf-8"))
    metrics: dict[str, float] = {}
    for artifact, listed in record.get("artifacts", {}).items():
        if step.artifacts.get(artifact) == "system.Metrics":
            for item in listed.get("artifacts", []):
                metrics.update(_scalars(item.get("metadata", {})))
    return StepResult(step=step, folder=folder, metrics=metrics)


def _scalars(metadata: Mapping[str, Any]) -> dict[str, float]:
    """Returns finite numbers; kfp stores all as doubles, so whole ones become int again."""
    numbers = {
        name: value
        for name, value in metadata.items()
        if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    }
    return {name: int(value) if float(value).is_integer() else value for name, value in numbers.items()}


def merge_metrics(results: Sequence[StepResult]) -> dict[str, float]:
    """Returns all metrics by name, a later step's value winning, and each again as `<step>.<metric>`."""
    merged: dict[str, float] = {}
    for result in results:
        merged.update(result.metrics)
    for result in results:
        merged.update({f"{result.step.name}.{name}": value for name, value in result.metrics.items()})
    return merged


def stage(results: Sequence[StepResult], pipeline_root: Path, staged: Path) -> None:
    """Puts each step's outputs under `staged/steps/<step>/`, by renames.

    Args:
        results: what `read_steps` returned.
        pipeline_root: where kfp.local put the outputs; its folders are gone afterwards.
        staged: an empty folder on the same file system.
    """
    target = staged / "steps"
    target.mkdir()
    for result in results:
        result.folder.rename(target / result.step.name)
    run_folder = find_run_folder(pipeline_root)
    left = sorted(run_folder.iterdir()) if run_folder else []
    for folder in left:  # a step that failed has no record; its error.json and partial outputs tell why
        if folder.is_dir() and any(folder.iterdir()):
            folder.rename(target / step_name(folder.name))


def write_results(package: Package, results: Sequence[StepResult], staged: Path) -> dict[str, float]:
    """Writes metrics.json, report.html and model/ of a run that is done.

    Args:
        package: the pipeline.
        results: the steps' results; their folders lie in `staged/steps` by now.
        staged: the folder to write to.

    Returns:
        The merged metrics.
    """
    metrics = merge_metrics(results)
    reports = _outputs(results, staged, "system.HTML")
    if reports:
        page = _one_page(package.display_name, reports, metrics, staged)
        (staged / "report.html").write_text(page, encoding="utf-8")
    models = _outputs(results, staged, "system.Model")
    if models:
        _copy(models[-1][1], staged / "model")
    write_json(staged / "metrics.json", metrics)
    return metrics


def _one_page(
    title: str, reports: Sequence[tuple[str, Path]], metrics: Mapping[str, float], staged: Path
) -> str:
    """Joins the reports of this package; HTML of other components cannot be joined, so it is named."""
    from geokfp.components._files import InputError  # late: it needs the extra `engine`
    from geokfp.components._report import combine

    facts: dict[str, Any] = {name: value for name, value in metrics.items() if "." not in name}
    ours = []
    for name, path in reports:
        try:
            combine("", [(name, path)])
            ours.append((name, path))
        except InputError:
            facts[f"report of {name}"] = path.relative_to(staged).as_posix()
    return combine(title, ours, facts)


def _outputs(results: Sequence[StepResult], staged: Path, schema_title: str) -> list[tuple[str, Path]]:
    """Returns the steps' display names with the paths of their artifacts of one type, in the steps' order."""
    found = [
        (result.step.display_name, staged / "steps" / result.step.name / artifact)
        for result in results
        for artifact, title in result.step.artifacts.items()
        if title == schema_title
    ]
    return [(name, path) for name, path in found if path.exists()]


def _copy(source: Path, target: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, target)
    else:
        target.mkdir()
        shutil.copy2(source, target / source.name)
