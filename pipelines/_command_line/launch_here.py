"""`geokfp launch --as-processes`: runs what a component would start on a cluster as processes of this host.

The folder that `--output` names holds the component's outputs under their names, and `metrics.json`.
"""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from .errors import RunFailed, UsageError

HAND_OVER = "hand-over"
"""Where processes hand files over when nothing else is said, beside the outputs."""
NAMESPACE = "default"
"""Namespace that the objects would go to when none is said."""


def defaults(options: Mapping[str, Any], output: Path) -> dict[str, Any]:
    """Returns what a component's options must have to run here, where they do not say it themselves.

    Args:
        options: what was typed.
        output: folder for the outputs.
    """
    return {
        "hand_over": options.get("hand_over") or str((output / HAND_OVER).absolute()),
        "namespace": options.get("namespace") or NAMESPACE,
    }


def run_here(component: str, config: Any, inputs: Mapping[str, str], output: Path) -> dict[str, float]:
    """Runs a component whose pods are processes of this machine, and returns its metrics.

    Args:
        component: its name.
        config: its options.
        inputs: paths of its input artifacts, by name.
        output: folder for the outputs.

    Raises:
        UsageError: an input that is wrong, or a component that cannot run so.
        RunFailed: a pod failed.
    """
    from geokfp.components._files import InputError  # late: they need the extra `engine`
    from geokfp.components._launch import ProcessFailed
    from geokfp.components._launch.as_processes import run_as_processes
    from geokfp.components._launch.launch_step import Surroundings

    if component not in _STEPS:
        raise UsageError(f"--as-processes: {component} cannot, only {', '.join(_STEPS)}")
    output.mkdir(parents=True, exist_ok=True)
    surroundings = Surroundings(run=run_as_processes, job_resource=output / "job_resource")
    try:
        metrics = _STEPS[component](config, inputs, output, surroundings)
    except InputError as error:
        raise UsageError(str(error)) from error
    except ProcessFailed as error:
        raise RunFailed(f"{component} failed: {error}") from error
    (output / "metrics.json").write_text(json.dumps(metrics, indent=2) + "\n", encoding="utf-8")
    return metrics


def _partition_graph(
    config: Any, inputs: Mapping[str, str], output: Path, surroundings: Any
) -> dict[str, float]:
    from geokfp.components.partition.run import run

    result = run(
        config,
        Path(inputs["graph"]),
        partitions=output / "partitions",
        report=output / "report.html",
        surroundings=surroundings,
    )
    return result.metrics


def _train_gnn(config: Any, inputs: Mapping[str, str], output: Path, surroundings: Any) -> dict[str, float]:
    from geokfp.components.training.run import Outputs, run

    outputs = Outputs(
        model=output / "model", predictions=output / "predictions", report=output / "report.html"
    )
    return run(config, Path(inputs["partitions"]), outputs, surroundings).metrics


_STEPS: Mapping[str, Callable[[Any, Mapping[str, str], Path, Any], dict[str, float]]] = {
    "partition_graph": _partition_graph,
    "train_gnn": _train_gnn,
}
