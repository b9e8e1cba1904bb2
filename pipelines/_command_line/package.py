"""Reading a compiled pipeline package (YAML): its parameters, its steps in order, their artifacts.

Reads the file as YAML, without kfp, so that `geokfp list` and tab completion answer at once. Knows nothing of
how a pipeline is run.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import yaml

from .. import PIPELINES, compiled_package
from .dags import tasks_in_order
from .errors import UsageError
from .step_inputs import TYPES, StepInputs, read_inputs, with_whole_numbers

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True, kw_only=True, slots=True)
class Parameter:
    """One parameter of a pipeline."""

    name: str
    """As in the pipeline's signature."""
    type: str
    """int, float, str, bool, list or dict."""
    default: Any
    """The value when none is given; None when one must be."""
    required: bool
    """Whether a value must be given."""
    description: str
    """From the pipeline's docstring."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """One task of a pipeline."""

    name: str
    """The task's name with underscores, such as `train_gnn`."""
    folder: str
    """The folder that kfp.local gives the task."""
    display_name: str
    """What the UI shows."""
    artifacts: Mapping[str, str]
    """Schema title, such as `system.Model`, by output artifact."""
    inputs: StepInputs
    """Where its options come from."""
    depends_on_parameters: bool = False
    """Whether a condition on the pipeline's parameters says if it runs."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Package:
    """A compiled pipeline."""

    path: Path
    """The YAML file."""
    name: str
    """The pipeline's name in KFP."""
    display_name: str
    """What the UI shows."""
    description: str
    """First line of the pipeline's docstring."""
    parameters: Mapping[str, Parameter]
    """By name, in the file's order."""
    steps: tuple[Step, ...]
    """In an order in which each step follows what it needs."""


def step_name(task: str) -> str:
    """Returns the name that users see for a task of the compiled pipeline."""
    return task.replace("-", "_")


def built_in_name(pipeline: str) -> str | None:
    """Returns the built-in pipeline that a PIPELINE argument names, None when it names none.

    KFP shows `single-site`, Python needs `single_site`; both are understood.
    """
    name = pipeline.replace("-", "_")
    return name if name in PIPELINES else None


def resolve(pipeline: str) -> Path:
    """Returns the package that a PIPELINE argument names.

    Args:
        pipeline: a built-in name, or the path of a compiled YAML.

    Raises:
        UsageError: it is neither.
    """
    name = built_in_name(pipeline)
    if name is not None:
        return compiled_package(name)
    path = Path(pipeline)
    if path.suffix in (".yaml", ".yml") and path.is_file():
        return path
    if path.suffix in (".yaml", ".yml"):
        raise UsageError(f"{pipeline}: no such file")
    nearest = get_close_matches(pipeline, PIPELINES, n=1)
    hint = f"did you mean {nearest[0]!r}? " if nearest else ""
    raise UsageError(
        f"no pipeline {pipeline!r}: {hint}give one of {', '.join(PIPELINES)}, or the path of a compiled .yaml"
    )


def read_package(path: Path) -> Package:
    """Reads a compiled pipeline.

    Raises:
        UsageError: the file is not a compiled pipeline.
    """
    try:
        document = next(iter(yaml.load_all(path.read_text(encoding="utf-8"), Loader=_LOADER)), None)
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: not YAML: {' '.join(str(error).split())}") from error
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from error
    if not isinstance(document, dict) or not {"pipelineInfo", "root", "deploymentSpec"} <= document.keys():
        raise UsageError(f"{path}: not a compiled pipeline (no pipelineInfo, root and deploymentSpec)")
    if "dag" not in document["root"]:
        raise UsageError(f"{path}: a single component; compile it inside a pipeline to run it")
    return package_of(document, path)


def package_of(document: Mapping[str, Any], path: Path) -> Package:
    """Returns what a compiled pipeline says.

    Args:
        document: its pipeline spec, as it stands in the file.
        path: the file, to name it in messages.
    """
    info, root = document["pipelineInfo"], document["root"]
    parameters = root.get("inputDefinitions", {}).get("parameters", {})
    return Package(
        path=path,
        name=info["name"],
        display_name=info.get("displayName", info["name"]),
        description=info.get("description", "").strip().split("\n")[0],
        parameters={name: _parameter(name, spec) for name, spec in parameters.items()},
        steps=tuple(_steps(document)),
    )


def _parameter(name: str, spec: Mapping[str, Any]) -> Parameter:
    kind = TYPES.get(spec.get("parameterType", "STRING"), "str")
    default = with_whole_numbers(kind, spec.get("defaultValue"))
    return Parameter(
        name=name,
        type=kind,
        default=default,
        required=default is None and not spec.get("isOptional", False),
        description=" ".join(spec.get("description", "").split()),
    )


def _steps(document: Mapping[str, Any]) -> Iterator[Step]:
    for found in tasks_in_order(document):
        name, task, component = found.name, found.document, found.component
        reference = task["componentRef"]["name"]
        executor = document["deploymentSpec"].get("executors", {}).get(component.get("executorLabel"), {})
        outputs = component.get("outputDefinitions", {}).get("artifacts", {})
        yield Step(
            name=step_name(name),
            folder=reference.removeprefix("comp-"),
            display_name=task.get("taskInfo", {}).get("name", name),
            artifacts={key: spec["artifactType"]["schemaTitle"] for key, spec in outputs.items()},
            inputs=read_inputs(task, component, executor),
            depends_on_parameters=found.depends_on_parameters,
        )
