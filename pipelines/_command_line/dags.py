"""The tasks of a compiled pipeline, those under its conditions among them.

A condition is a pipeline inside the pipeline, whose inputs the compiler passes on under other names. Reads
the file's own structure; knows nothing of what a task does.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from graphlib import TopologicalSorter
from typing import Any

_CHANNEL = re.compile(r"\['([^']+)'\]")


@dataclass(frozen=True, kw_only=True, slots=True)
class Task:
    """A task that starts no others."""

    name: str
    """As in the compiled file."""
    document: Mapping[str, Any]
    """The task, with the sources of its inputs as the whole pipeline knows them."""
    component: Mapping[str, Any]
    """The specification of what it runs."""
    depends_on_parameters: bool
    """Whether a condition on the pipeline's parameters says if it runs: its options may be such that it must
    not run then."""


def tasks_in_order(document: Mapping[str, Any]) -> Iterator[Task]:
    """Yields the tasks of a pipeline, each after those that it needs.

    Loops and pipelines inside the pipeline are one task each.

    Args:
        document: the compiled pipeline.
    """
    yield from _tasks(document, document["root"]["dag"]["tasks"], None, False)


def _tasks(
    document: Mapping[str, Any], tasks: Mapping[str, Any], outer: Mapping[str, Any] | None, guarded: bool
) -> Iterator[Task]:
    graph = {name: task.get("dependentTasks", []) for name, task in sorted(tasks.items())}
    for name in TopologicalSorter(graph).static_order():
        task = tasks[name] if outer is None else _in_pipeline_names(tasks[name], outer)
        component = document.get("components", {}).get(task["componentRef"]["name"], {})
        condition = task.get("triggerPolicy", {}).get("condition", "")
        if condition and "dag" in component and not _loops(task):
            given = task.get("inputs", {}).get("parameters", {})
            named = [given.get(channel, {}) for channel in _CHANNEL.findall(condition)]
            of_parameters = any("taskOutputParameter" not in source for source in named)
            yield from _tasks(
                document, component["dag"]["tasks"], task.get("inputs", {}), guarded or of_parameters
            )
        else:
            yield Task(name=name, document=task, component=component, depends_on_parameters=guarded)


def _loops(task: Mapping[str, Any]) -> bool:
    return "parameterIterator" in task or "artifactIterator" in task


def _in_pipeline_names(task: Mapping[str, Any], outer: Mapping[str, Any]) -> dict[str, Any]:
    """Puts the sources of a condition's inputs in the place of the names that its tasks know them by."""
    given = task.get("inputs", {})
    inputs = {
        kind: {
            option: outer.get(kind, {}).get(source.get(key), source) if key in source else source
            for option, source in given.get(kind, {}).items()
        }
        for kind, key in (("parameters", "componentInputParameter"), ("artifacts", "componentInputArtifact"))
    }
    return {**task, "inputs": inputs}
