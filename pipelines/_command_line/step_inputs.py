"""Where the options of a compiled pipeline's step come from.

Reads the file's own structure; knows nothing of what an option means.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

TYPES = {
    "NUMBER_INTEGER": "int",
    "NUMBER_DOUBLE": "float",
    "STRING": "str",
    "BOOLEAN": "bool",
    "LIST": "list",
    "STRUCT": "dict",
}
"""Type of a value, by the name that a package gives it."""
_PLACEHOLDER = "{{$"
_SETTINGS = "TASK_CONFIG"
"""Type of what KFP itself hands to a step: no option of anyone's."""
_CONFIG = re.compile(r"^ +from geokfp\.components\.(\w+)\.config import (\w+)$", re.MULTILINE)


@dataclass(frozen=True, kw_only=True, slots=True)
class StepInputs:
    """What a step gets beside artifacts, by the name of its component's option."""

    config: tuple[str, str] | None
    """Stage and class of the config that the step builds of its options; None of another's component."""
    fixed: Mapping[str, Any]
    """Values that the package holds: the component's defaults, and constants of the pipeline."""
    parameters: Mapping[str, str]
    """Parameter of the pipeline by option."""
    others: frozenset[str]
    """Options whose values are known when an earlier step has ended."""

    @property
    def renamed(self) -> dict[str, str]:
        """Parameter of the pipeline by option, where the two have different names."""
        return {option: name for option, name in self.parameters.items() if option != name}


def read_inputs(
    task: Mapping[str, Any], component: Mapping[str, Any], executor: Mapping[str, Any]
) -> StepInputs:
    """Reads what a task of the pipeline gets.

    Args:
        task: the task, as it stands in the pipeline's dag.
        component: its component's specification.
        executor: what runs it; empty for a pipeline inside the pipeline.
    """
    fixed: dict[str, Any] = {}
    parameters: dict[str, str] = {}
    others = set()
    given = task.get("inputs", {}).get("parameters", {})
    for option, spec in component.get("inputDefinitions", {}).get("parameters", {}).items():
        if spec.get("parameterType") == _SETTINGS:
            continue
        source = given.get(option, {"runtimeValue": {"constant": spec.get("defaultValue")}})
        value = source.get("runtimeValue", {}).get("constant")
        if "componentInputParameter" in source:
            parameters[option] = source["componentInputParameter"]
        elif value is None or _PLACEHOLDER in str(value):
            others.add(option)
        else:
            fixed[option] = with_whole_numbers(TYPES.get(spec.get("parameterType"), "str"), value)
    return StepInputs(config=_config(executor), fixed=fixed, parameters=parameters, others=frozenset(others))


def with_whole_numbers(kind: str, value: Any) -> Any:
    """Undoes a package's way of storing every number as a double.

    Args:
        kind: one of the types of `TYPES`.
        value: as the package holds it.
    """
    if kind == "int" and value is not None:
        return int(value)
    return _whole(value) if kind in ("list", "dict") else value


def _whole(value: Any) -> Any:
    if isinstance(value, list):
        return [_whole(item) for item in value]
    if isinstance(value, dict):
        return {key: _whole(item) for key, item in value.items()}
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _config(executor: Mapping[str, Any]) -> tuple[str, str] | None:
    """Returns what the component's own source imports: a component of that name may be anyone's."""
    found = {(match[1], match[2]) for text in _command(executor) for match in _CONFIG.finditer(text)}
    return found.pop() if len(found) == 1 else None


def _command(executor: Mapping[str, Any]) -> list[str]:
    return [text for text in executor.get("container", {}).get("command", []) if isinstance(text, str)]
