"""Calls a component's own function as KFP's executor does, in this process."""

import inspect
from pathlib import Path
from typing import Any

from geokfp import components
from kfp import dsl


def call(name: str, folder: Path, **given: Any) -> dict[str, float]:
    """Runs a component.

    Args:
        name: the component.
        folder: where its outputs go, each by its own name.
        **given: options, and the path of each input artifact.

    Returns:
        The metrics that it logged.
    """
    component = getattr(components, name)
    inputs = component.component_spec.inputs
    arguments: dict[str, Any] = {}
    for key in inspect.signature(component.python_func).parameters:
        if key not in inputs:
            kind = dsl.Metrics if key == "metrics" else dsl.ClassificationMetrics
            is_path = not component.component_spec.outputs[key].type.startswith("system.")
            arguments[key] = str(folder / key) if is_path else _artifact(key, folder / key, kind)
        elif key in given and inputs[key].type.startswith("system."):
            arguments[key] = _artifact(key, given[key], dsl.Dataset)
        elif key in given:
            arguments[key] = given[key]
    component.python_func(**arguments)
    return dict(arguments["metrics"].metadata)


def _artifact(name: str, path: Path, kind: type) -> Any:
    return kind(name=name, uri=str(path), metadata={})
