"""A compiled pipeline, run as KFP's backend runs it: what its driver and launcher make of each task.

Only tasks without loops; of conditions those that hold a parameter against a text. Artifacts lie under
`minio://...`, which is `/minio/...` in pods; here that folder is the same for all steps, in place of a store
to download from.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

STORE = "/minio"
OUTPUTS = "/tmp/kfp/outputs"
METADATA = "/tmp/kfp_outputs/output_metadata.json"
CONDITION = re.compile(r"inputs\.parameter_values\['(.+)'\] == '(.*)'")


@dataclass(frozen=True)
class Step:
    """A task, when its inputs are there: what its pod runs."""

    name: str
    image: str
    command: tuple[str, ...]
    store: Path
    """Mounted at STORE."""

    scratch: Path
    """Mounted at /tmp."""


@dataclass(frozen=True)
class _Given:
    """What the tasks of one DAG are given by what is around it."""

    parameters: Mapping[str, Any]
    artifacts: Mapping[str, Any]


@dataclass
class PodSteps:
    """The tasks of one run, in the order of their inputs, and what they gave."""

    package: Path
    arguments: Mapping[str, Any]
    folder: Path
    """Empty: becomes the store of the run, and the scratch folders of its pods."""

    run: Callable[[Step], object]
    """Runs a step's command in a container of its image; raises where it fails."""

    task_config: Mapping[str, Any] = field(default_factory=dict)
    """What is set on every task, as components with a `dsl.TaskConfig` are told."""

    root: str = "minio://mlpipeline/v2/artifacts"
    """URI under which artifacts lie: in an object store, or the path where pods see them."""

    artifacts: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    parameters: dict[tuple[str, str], Any] = field(default_factory=dict)

    def run_all(self) -> None:
        """Runs all tasks, each after those that it depends on."""
        spec = next(iter(yaml.safe_load_all(self.package.read_text(encoding="utf-8"))))
        inputs = spec["root"]["inputDefinitions"]["parameters"]
        values = {name: given.get("defaultValue") for name, given in inputs.items()} | dict(self.arguments)
        self._store.mkdir()
        self._store.chmod(0o777)
        self._run_tasks(spec, spec["root"]["dag"]["tasks"], _Given(values, {}))

    def path(self, task: str, artifact: str) -> Path:
        """Returns where an artifact lies on this machine."""
        return self._in_store(self.artifacts[task, artifact])

    @property
    def _store(self) -> Path:
        return self.folder / "store"

    def _in_store(self, artifact: Mapping[str, Any]) -> Path:
        return self._store / artifact["uri"].removeprefix("minio://").removeprefix(f"{STORE}/")

    def _run_tasks(self, spec: Mapping[str, Any], tasks: Mapping[str, Any], given: _Given) -> None:
        waiting = dict(tasks)
        while waiting:
            name = next(
                name for name, task in waiting.items() if not {*task.get("dependentTasks", ())} & {*waiting}
            )
            task = waiting.pop(name)
            component = spec["components"][task["componentRef"]["name"]]
            inputs = self._inputs(component, task, given)
            if "dag" not in component:
                self._run_one(spec, name, component, inputs)
            elif _holds(task, inputs.parameters):
                self._run_tasks(spec, component["dag"]["tasks"], inputs)

    def _run_one(
        self, spec: Mapping[str, Any], name: str, component: Mapping[str, Any], inputs: _Given
    ) -> None:
        container = spec["deploymentSpec"]["executors"][component["executorLabel"]]["container"]
        scratch = self.folder / name
        for folder in (scratch, scratch / "kfp/outputs", scratch / "kfp_outputs"):
            folder.mkdir(parents=True)
            folder.chmod(0o777)
        outputs = self._outputs(name, component.get("outputDefinitions", {}))
        for artifact in outputs["artifacts"].values():
            _writable(self._in_store(artifact["artifacts"][0]).parent, self._store)
        parameters = {name: _number(value) for name, value in inputs.parameters.items() if value is not None}
        artifacts = {name: {"artifacts": [artifact]} for name, artifact in inputs.artifacts.items()}
        given = {"parameterValues": parameters, "artifacts": artifacts}
        executor_input = {"inputs": given, "outputs": outputs}
        text = json.dumps(executor_input)
        words = [*container["command"], *container["args"]]
        command = tuple(text if word == "{{$}}" else word for word in words)
        self.run(
            Step(name=name, image=container["image"], command=command, store=self._store, scratch=scratch)
        )
        self._keep(name, component.get("outputDefinitions", {}), outputs, scratch)

    def _inputs(self, component: Mapping[str, Any], task: Mapping[str, Any], given: _Given) -> _Given:
        definitions = component.get("inputDefinitions", {}).get("parameters", {})
        parameters = {name: each.get("defaultValue") for name, each in definitions.items()}
        for name, definition in definitions.items():
            if definition["parameterType"] == "TASK_CONFIG":
                parameters[name] = dict(self.task_config)
        artifacts = {}
        inputs = task.get("inputs", {})
        for name, source in inputs.get("parameters", {}).items():
            parameters[name] = self._value(source, given.parameters)
        for name, source in inputs.get("artifacts", {}).items():
            artifacts[name] = self._artifact(source, given.artifacts)
        return _Given(parameters, artifacts)

    def _artifact(self, source: Mapping[str, Any], given: Mapping[str, Any]) -> Any:
        if "componentInputArtifact" in source:
            return given[source["componentInputArtifact"]]
        made = source["taskOutputArtifact"]
        return self.artifacts[made["producerTask"], made["outputArtifactKey"]]

    def _value(self, source: Mapping[str, Any], values: Mapping[str, Any]) -> Any:
        if "componentInputParameter" in source:
            return values[source["componentInputParameter"]]
        if "taskOutputParameter" in source:
            made = source["taskOutputParameter"]
            return self.parameters[made["producerTask"], made["outputParameterKey"]]
        constant = source["runtimeValue"]["constant"]
        return constant.replace("{{$.pipeline_job_uuid}}", "run-1") if isinstance(constant, str) else constant

    def _outputs(self, task: str, definitions: Mapping[str, Any]) -> dict[str, Any]:
        artifacts = {
            name: {
                "artifacts": [
                    {
                        "name": name,
                        "type": definition["artifactType"],
                        "uri": f"{self.root}/run-1/{task}/{name}",
                        "metadata": {},
                    }
                ]
            }
            for name, definition in definitions.get("artifacts", {}).items()
        }
        parameters = {name: {"outputFile": f"{OUTPUTS}/{name}"} for name in definitions.get("parameters", {})}
        return {"artifacts": artifacts, "parameters": parameters, "outputFile": METADATA}

    def _keep(
        self, task: str, definitions: Mapping[str, Any], outputs: Mapping[str, Any], scratch: Path
    ) -> None:
        """Takes what the executor said of its outputs, as the launcher hands it to those that come after."""
        said = scratch / METADATA.removeprefix("/tmp/")
        told = json.loads(said.read_text()) if said.exists() else {}
        for name, artifact in outputs["artifacts"].items():
            self.artifacts[task, name] = artifact["artifacts"][0]
            for changed in told.get("artifacts", {}).get(name, {}).get("artifacts", ()):
                self.artifacts[task, name] |= {
                    key: changed[key] for key in ("uri", "metadata") if key in changed
                }
        returned = told.get("parameterValues", {})
        self.parameters |= {(task, name): value for name, value in returned.items()}
        for name, definition in definitions.get("parameters", {}).items():
            if name in returned:
                continue
            text = (scratch / OUTPUTS.removeprefix("/tmp/") / name).read_text()
            as_text = definition["parameterType"] == "STRING"
            self.parameters[task, name] = text if as_text else json.loads(text)


def _holds(task: Mapping[str, Any], parameters: Mapping[str, Any]) -> bool:
    """Tells whether the condition that a task stands under is true."""
    found = CONDITION.fullmatch(task["triggerPolicy"]["condition"])
    assert found, task["triggerPolicy"]
    return bool(parameters[found[1]] == found[2])


def _number(value: Any) -> Any:
    """Returns a value as protobuf's JSON has it: compiled pipelines hold 2.0 where an int is 2."""
    if isinstance(value, list):
        return [_number(each) for each in value]
    if isinstance(value, dict):
        return {name: _number(each) for name, each in value.items()}
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _writable(folder: Path, top: Path) -> None:
    """Makes a folder that any user may write in, as the volume under a pod's artifacts is."""
    parents: Sequence[Path] = [part for part in (folder, *folder.parents) if part.is_relative_to(top)]
    for part in reversed(parents):
        part.mkdir(exist_ok=True)
        part.chmod(0o777)
