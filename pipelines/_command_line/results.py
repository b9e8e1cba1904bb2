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
from .package import Package

_RECORD = "executor_output.json"


@dataclass(frozen=True, kw_only=True, slots=True)
class StepResult:
    """What one step left."""

    name: str
    """The step's name with underscores."""
    display_name: str
    """What the UI shows."""
    folder: Path
    """Its outputs: one file or folder an artifact or parameter."""
    metrics: Mapping[str, float]
    """Scalar metrics."""
    artifacts: Mapping[str, str]
    """Schema title, such as `system.Model`, by artifact."""


def read_steps(package: Package, pipeline_root: Path) -> list[StepResult]:
    """Returns the results of the steps that ran, in the pipeline's order.

    Steps that the package does not list, those of loops and nested pipelines, follow by path.
    """
    run_folder = find_run_folder(pipeline_root)
    if run_folder is None:
        return []
    found = sorted(record.parent for record in run_folder.rglob(_RECORD))
    planned = {run_folder / step.folder: step for step in package.steps}
    order = [folder for folder in planned if folder in found]
    order += [folder for folder in found if folder not in planned]
    results = []
    for folder in order:
        step = planned.get(folder)
        name = step.name if step else folder.relative_to(run_folder).as_posix().replace("/", ".")
        results.append(_read_step(name, step.display_name if step else name, folder))
    return results


def find_run_folder(pipeline_root: Path) -> Path | None:
    """Returns the folder that kfp.local made for the run: `<pipeline>-<time>`; None before the first step."""
    folders = [entry for entry in pipeline_root.iterdir() if entry.is_dir() and entry.name != "workspace"]
    return folders[0] if folders else None


def _read_step(name: str, display_name: str, folder: Path) -> StepResult:
    record = json.loads((folder / _RECORD).read_text(encoding="utf-8"))
    metrics: dict[str, float] = {}
    artifacts: dict[str, str] = {}
    for artifact, listed in record.get("artifacts", {}).items():
        for item in listed.get("artifacts", []):
            artifacts[artifact] = item.get("type", {}).get("schemaTitle", "")
            if artifacts[artifact] == "system.Metrics":
                metrics.update(_scalars(item.get("metadata", {})))
    return StepResult(
        name=name, display_name=display_name, folder=folder, metrics=metrics, artifacts=artifacts
    )


def _scalars(metadata: Mapping[str, Any]) -> dict[str, float]:
    """Returns finite numbers; kfp stores all as doubles, so whole ones become int again."""
    numbers = {
        name: value
        for name, value in metadata.items()
        if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    }
    return {name: int(value) if float(value).is_integer() else value for name, value in numbers.items()}


def merge_metrics(steps: Sequence[StepResult]) -> dict[str, float]:
    """Returns all metrics by name, a later step's value winning, and each again as `<step>.<metric>`."""
    merged: dict[str, float] = {}
    for step in steps:
        merged.update(step.metrics)
    for step in steps:
        merged.update({f"{step.name}.{name}": value for name, value in step.metrics.items()})
    return merged


def stage(steps: Sequence[StepResult], pipeline_root: Path, staged: Path) -> None:
    """Puts each step's artifacts under `staged/steps/<step>/`, by renames.

    Args:
        steps: what `read_steps` returned.
        pipeline_root: where kfp.local put the outputs; its folders are gone afterwards.
        staged: an empty folder on the same file system.
    """
    target = staged / "steps"
    target.mkdir()
    for step in steps:
        step.folder.rename(target / step.name)
    run_folder = find_run_folder(pipeline_root)
    left = sorted(run_folder.iterdir()) if run_folder else []
    for folder in left:  # a step that failed has no record; its error.json and partial outputs tell why
        if any(folder.rglob("*")):
            folder.rename(target / folder.name.replace("-", "_"))


def write_results(package: Package, steps: Sequence[StepResult], staged: Path) -> dict[str, float]:
    """Writes metrics.json, report.html and model/ of a run that is done.

    Args:
        package: the pipeline.
        steps: the steps' results; their folders lie in `staged/steps` by now.
        staged: the folder to write to.

    Returns:
        The merged metrics.
    """
    metrics = merge_metrics(steps)
    folders = {step.name: staged / "steps" / step.name for step in steps}
    reports = [
        (step.display_name, folders[step.name] / name)
        for step in steps
        for name, title in step.artifacts.items()
        if title == "system.HTML" and (folders[step.name] / name).is_file()
    ]
    if reports:
        from geokfp.components._report import combine

        facts = {name: value for name, value in metrics.items() if "." not in name}
        (staged / "report.html").write_text(combine(package.display_name, reports, facts), encoding="utf-8")
    models = [
        folders[step.name] / name
        for step in steps
        for name, title in step.artifacts.items()
        if title == "system.Model" and (folders[step.name] / name).exists()
    ]
    if models:
        _copy(models[-1], staged / "model")
    write_json(staged / "metrics.json", metrics)
    return metrics


def _copy(source: Path, target: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, target)
    else:
        target.mkdir()
        shutil.copy2(source, target / source.name)
