"""Runs a compiled pipeline's steps in this process, where kfp.local would take seconds for each.

Stands for `run_supervised` of the command line: it prints the same lines and leaves the same files, so that
all before and behind it is the product's own.
"""

import io
import json
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import yaml
from geokfp.pipelines._command_line.package import Step, read_package, step_name

from .component_call import call


def run_in_process(
    package: Path, arguments: Mapping[str, Any], pipeline_root: Path, on_line: Callable[[str], None]
) -> bool:
    """Runs the steps in order, up to the first that fails; see `run_supervised`."""
    run = _Run(package, arguments, pipeline_root / "run")
    for step in run.steps:
        printed = io.StringIO()
        on_line(f"00:00:00.000 - INFO - Executing task '{step.folder}'")
        with redirect_stdout(printed):
            done = run.step(step)
        for line in printed.getvalue().splitlines():
            on_line(line)
        status = "SUCCESS" if done else "FAILURE"
        on_line(f"00:00:00.000 - INFO - Task '{step.folder}' finished with status {status}")
        if not done:
            return False
    return True


class _Run:
    def __init__(self, package: Path, arguments: Mapping[str, Any], folder: Path) -> None:
        read = read_package(package)
        document = next(iter(yaml.safe_load_all(package.read_text(encoding="utf-8"))))
        self._tasks = {step_name(name): task for name, task in document["root"]["dag"]["tasks"].items()}
        self._executors = document["deploymentSpec"]["executors"]
        self._components = document["components"]
        self._values = {name: each.default for name, each in read.parameters.items()} | dict(arguments)
        self._folder = folder
        self._made: dict[str, dict[str, Path]] = {}
        self.steps = read.steps

    def step(self, step: Step) -> bool:
        """Runs one step; returns whether it succeeded."""
        executor = self._executors[self._component(step)["executorLabel"]]
        if "importer" in executor:
            option = executor["importer"]["artifactUri"]["runtimeParameter"]
            self._made[step.name] = {"artifact": Path(self._options(step)[option])}
            return True
        function = executor["container"]["args"][-1]
        folder = self._folder / step.folder
        folder.mkdir(parents=True)
        try:
            metrics = call(function, folder, **self._options(step), **dict(self._artifacts(step)))
        except Exception:  # noqa: BLE001  a step is a process: whatever it raises ends it alone
            print(traceback.format_exc())
            return False
        self._made[step.name] = {path.name: path for path in folder.iterdir()}
        listed = {"metrics": {"artifacts": [{"metadata": metrics}]}}
        (folder / "executor_output.json").write_text(json.dumps({"artifacts": listed}))
        return True

    def _component(self, step: Step) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self._components[self._tasks[step.name]["componentRef"]["name"]]
        return found

    def _options(self, step: Step) -> dict[str, Any]:
        values = dict(step.inputs.fixed)
        values |= {option: self._values[name] for option, name in step.inputs.parameters.items()}
        given = self._tasks[step.name].get("inputs", {}).get("parameters", {})
        for option in step.inputs.others & given.keys():
            source = given[option]["taskOutputParameter"]
            made = self._made[step_name(source["producerTask"])]
            values[option] = made[source["outputParameterKey"]].read_text()
        return values

    def _artifacts(self, step: Step) -> Iterator[tuple[str, Path]]:
        for name, given in self._tasks[step.name].get("inputs", {}).get("artifacts", {}).items():
            source = given["taskOutputArtifact"]
            yield name, self._made[step_name(source["producerTask"])][source["outputArtifactKey"]]
