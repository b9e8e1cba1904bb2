"""What a component would start on a cluster, planned from its options as they are typed.

A package that starts pods says so in its module `pod_plan`, by a function `planned(config, inputs,
settings)`, which its step calls as well.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import Any

from .errors import UsageError
from .package import Package, Parameter, package_of
from .step_inputs import TYPES
from .values import collect, read_mapping

LAUNCHED = {
    "partition_graph": "partition",
    "train_gnn": "training",
    "geo_train_gnn": "geo_training",
    "partition_at_sites": "geo_training.at_sites",
    "shard_at_sites": "geo_training.at_sites",
    "geo_train": "table_training",
}
"""Package of `geokfp.components` by component that starts pods."""
RUN_ID = "by-hand"
"""Run that is planned where none is named."""
NO_DEFAULTS: Mapping[str, Any] = MappingProxyType({})

_YAML_TYPES: dict[type, tuple[type, str]] = {
    dict: (dict, "a mapping"),
    tuple: (list, "a list"),
    str: (str, "text"),
}
"""What YAML holds for a field of settings, by the field's own type."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ComponentPlan:
    """What a component was asked for, and what it starts."""

    launcher: str
    """Kind of objects."""
    launches: tuple[Any, ...]
    """A `PodLaunch` a cluster."""
    config: Any
    """The component's own config."""
    inputs: Mapping[str, str]
    """Path or URI by input artifact."""


def plan_component(
    component: str,
    launcher: str,
    assignments: Iterable[str],
    params_file: Path | None,
    settings_file: Path | None,
    defaults: Mapping[str, Any] = NO_DEFAULTS,
) -> ComponentPlan:
    """Returns what a component starts on a cluster.

    Args:
        component: its name.
        launcher: the kind of objects.
        assignments: `NAME=VALUE` of its parameters and input artifacts, as typed.
        params_file: a YAML mapping of the same.
        settings_file: a YAML mapping of pod settings.
        defaults: values of parameters that are not given, in place of the component's own.

    Raises:
        UsageError: a name or value that is not allowed.
    """
    from geokfp.components._files import InputError  # late: they need the extra `engine`
    from geokfp.components._launch.launch_step import Surroundings
    from geokfp.components._launch.pods import KINDS

    home = _home(component)
    if launcher not in KINDS:
        raise UsageError(f"--launcher {launcher}: must be one of {', '.join(KINDS)}")
    package, artifacts = _component_package(component)
    values = {name: parameter.default for name, parameter in package.parameters.items()}
    values |= {"run_id": RUN_ID, **defaults, **collect(package, assignments, params_file)}
    inputs = {name: values[name] for name in artifacts if values[name] is not None}
    try:
        config = Surroundings().in_run(_config(package, {**values, "launcher": launcher}))
        settings = _settings(settings_file, getattr(config, "service_account", ""))
        planned = import_module(f"geokfp.components.{home}.pod_plan").planned
        launches = tuple(planned(config, inputs, settings))
    except InputError as error:
        raise UsageError(str(error)) from error
    return ComponentPlan(launcher=launcher, launches=launches, config=config, inputs=inputs)


def _home(component: str) -> str:
    if component in LAUNCHED:
        return LAUNCHED[component]
    nearest = get_close_matches(component, LAUNCHED, n=1)
    hint = f"did you mean {nearest[0]!r}? " if nearest else ""
    raise UsageError(f"no component {component!r} that starts pods: {hint}give one of {', '.join(LAUNCHED)}")


def _component_package(component: str) -> tuple[Package, tuple[str, ...]]:
    """Reads a component as the pipeline of one step that it is to kfp; its input artifacts are parameters."""
    import geokfp.components
    from google.protobuf import json_format

    function = getattr(geokfp.components, component)
    document = json_format.MessageToDict(function.pipeline_spec)
    package = package_of(document, Path(component))
    inputs = document["root"]["inputDefinitions"].get("artifacts", {})
    artifacts = {
        name: Parameter(
            name=name,
            type="str",
            default=None,
            required=not spec.get("isOptional", False),
            description=" ".join(spec.get("description", "").split()),
        )
        for name, spec in inputs.items()
    }
    specs = document["root"]["inputDefinitions"].get("parameters", {})
    typed = {name: p for name, p in package.parameters.items() if specs[name]["parameterType"] in TYPES}
    return replace(package, parameters={**artifacts, **typed}), tuple(artifacts)


def _config(package: Package, values: Mapping[str, Any]) -> Any:
    (step,) = package.steps
    if step.inputs.config is None:
        raise UsageError(f"{package.name}: its options are unknown")
    stage, name = step.inputs.config
    config = getattr(import_module(f"geokfp.components.{stage}.config"), name)
    names = {field.name for field in fields(config)}
    return config(**{option: value for option, value in values.items() if option in names})


def _settings(file: Path | None, service_account: str) -> Any:
    from geokfp.components._launch.pods import PodSettings

    empty = PodSettings()
    kinds = {field.name: type(getattr(empty, field.name)) for field in fields(PodSettings)}
    del kinds["service_account"]  # a parameter of the component
    given = read_mapping(file, "--pod-settings") if file else {}
    for name, value in given.items():
        if name not in kinds:
            raise UsageError(f"--pod-settings {file}: {name} is unknown, allowed: {', '.join(kinds)}")
        kind, told = _YAML_TYPES[kinds[name]]
        if not isinstance(value, kind):
            raise UsageError(f"--pod-settings {file}: {name} is {value!r}, allowed: {told}")
    settings: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in given.items()
    }
    return PodSettings(**settings, service_account=service_account)
