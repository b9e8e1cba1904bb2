"""`geokfp launch --as-processes`: runs what a component would start on a cluster as processes of this host.

The folder that `--output` names holds the component's outputs under their names, and `metrics.json`.
"""

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from .component_plan import ComponentPlan
from .errors import RunFailed, UsageError

HAND_OVER = "hand-over"
"""Where processes hand files over when nothing else is said, beside the outputs."""
NAMESPACE = "default"
"""Namespace that the objects would go to when none is said."""


def defaults(output: Path) -> dict[str, Any]:
    """Returns what a component's options are here, where nothing is typed.

    Args:
        output: folder for the outputs.
    """
    return {"hand_over": str((output / HAND_OVER).absolute()), "namespace": NAMESPACE}


def run_here(component: str, plan: ComponentPlan, output: Path) -> dict[str, float]:
    """Runs a component whose pods are processes of this machine, and returns its metrics.

    Args:
        component: its name.
        plan: what it starts.
        output: folder for the outputs.

    Raises:
        UsageError: an input that is wrong.
        RunFailed: a pod failed.
    """
    from geokfp.components._files import InputError  # late: they need the extra `engine`
    from geokfp.components._launch import ProcessFailed
    from geokfp.components._launch.as_processes import run_as_processes
    from geokfp.components._launch.launch_step import Surroundings

    if remote := [name for name, uri in plan.inputs.items() if "://" in uri]:
        raise UsageError(f"{remote[0]} {plan.inputs[remote[0]]!r}: must be a path on this machine")
    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"--output {output}: {error.strerror}") from error
    settings = plan.launches[0].groups[0].settings
    surroundings = Surroundings(settings=settings, run=run_as_processes, job_resource=output / "job_resource")
    try:
        metrics = _STEPS[component](plan.config, plan.inputs, output, surroundings)
    except InputError as error:
        raise UsageError(str(error)) from error
    except ProcessFailed as error:
        raise RunFailed(f"{component} failed: {error}") from error
    finally:
        for folder in (*(output / HAND_OVER).glob("*"), output / HAND_OVER):
            with suppress(OSError):  # it is elsewhere, or another run hands over there
                folder.rmdir()
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


def _geo_train_gnn(
    config: Any, inputs: Mapping[str, str], output: Path, surroundings: Any
) -> dict[str, float]:
    from geokfp.components.geo_training.run import Outputs, run

    outputs = Outputs(
        model=output / "model", predictions=output / "predictions", report=output / "report.html"
    )
    trained = Path(inputs["trained"]) if "trained" in inputs else None
    return run(config, Path(inputs["partitions"]), trained, outputs, surroundings).metrics


def _partition_at_sites(
    config: Any,
    inputs: Mapping[str, str],  # noqa: ARG001
    output: Path,
    surroundings: Any,
) -> dict[str, float]:
    from geokfp.components.geo_training.at_sites.run import run

    made, report = output / "partitions", output / "report.html"
    return run(config, partitions=made, report=report, surroundings=surroundings)


def _shard_at_sites(
    config: Any,
    inputs: Mapping[str, str],  # noqa: ARG001
    output: Path,
    surroundings: Any,
) -> dict[str, float]:
    from geokfp.components.geo_training.at_sites.shard_run import run

    return run(config, shards=output / "shards", report=output / "report.html", surroundings=surroundings)


def _geo_train(config: Any, inputs: Mapping[str, str], output: Path, surroundings: Any) -> dict[str, float]:
    from geokfp.components.table_training.run import Outputs, run

    outputs = Outputs(
        model=output / "model", predictions=output / "predictions", report=output / "report.html"
    )
    return run(config, Path(inputs["shards"]), outputs, surroundings).metrics


_STEPS: Mapping[str, Callable[[Any, Mapping[str, str], Path, Any], dict[str, float]]] = {
    "partition_graph": _partition_graph,
    "train_gnn": _train_gnn,
    "geo_train_gnn": _geo_train_gnn,
    "partition_at_sites": _partition_at_sites,
    "shard_at_sites": _shard_at_sites,
    "geo_train": _geo_train,
}
