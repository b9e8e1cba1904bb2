"""A compiled pipeline, run as KFP's backend runs it: what its driver and launcher make of each task.

Only tasks in one DAG, without loops and conditions. Artifacts lie under `minio://...`, which is
`/minio/...` in pods; here that folder is the same for all steps, in place of a store to download from.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

STORE = "/minio"
OUTPUTS = "/tmp/kfp/outputs"
METADATA = "/tmp/kfp_outputs/output_metadata.json"


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


@dataclass
class PodSteps:
    """The tasks of one run, in the order of their inputs, and what they gave."""

    package: Path
    arguments: Mapping[str, Any]
    folder: Path
    """Empty: becomes the store of the run, and the scratch folders of its pods."""

    run: Callable[[Step], object]
    """Runs a step's command in a container of its image; raises where it fails."""

    artifacts: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    parameters: dict[tuple[str, str], Any] = field(default_factory=dict)

    def run_all(self) -> None:
        """Runs all tasks, each after those that it depends on."""
        spec = next(iter(yaml.safe_load_all(self.package.read_text(encoding="utf-8"))))
        inputs = spec["root"]["inputDefinitions"]["parameters"]
        values = {name: given.get("defaultValue") for name, given in inputs.items()} | dict(self.arguments)
        store = self.folder / "store"
        store.mkdir()
        store.chmod(0o777)
        waiting = dict(spec["root"]["dag"]["tasks"])
        while waiting:
            name = next(
                name for name, task in waiting.items() if not {*task.get("dependentTasks", ())} & {*waiting}
            )
            self._run_one(spec, name, waiting.pop(name), values, store)

    def path(self, task: str, artifact: str) -> Path:
        """Returns where an artifact lies on this machine."""
        return self.folder / "store" / self.artifacts[task, artifact]["uri"].removeprefix("minio://")

    def _run_one(
        self,
        spec: Mapping[str, Any],
        name: str,
        task: Mapping[str, Any],
        values: Mapping[str, Any],
        store: Path,
    ) -> None:
        component = spec["components"][task["componentRef"]["name"]]
        container = spec["deploymentSpec"]["executors"][component["executorLabel"]]["container"]
        scratch = self.folder / name
        for folder in (scratch, scratch / "kfp/outputs", scratch / "kfp_outputs"):
            folder.mkdir(parents=True)
            folder.chmod(0o777)
        outputs = self._outputs(name, component.get("outputDefinitions", {}))
        for artifact in outputs["artifacts"].values():
            made = self.folder / "store" / artifact["artifacts"][0]["uri"].removeprefix("minio://")
            _writable(made.parent, store)
        executor_input = {"inputs": self._inputs(component, task, values), "outputs": outputs}
        text = json.dumps(executor_input)
        words = [*container["command"], *container["args"]]
        command = tuple(text if word == "{{$}}" else word for word in words)
        self.run(Step(name=name, image=container["image"], command=command, store=store, scratch=scratch))
        self._keep(name, component.get("outputDefinitions", {}), outputs, scratch)

    def _inputs(
        self, component: Mapping[str, Any], task: Mapping[str, Any], values: Mapping[str, Any]
    ) -> Any:
        definitions = component.get("inputDefinitions", {}).get("parameters", {})
        given = {name: each.get("defaultValue") for name, each in definitions.items()}
        for name, source in task["inputs"].get("parameters", {}).items():
            given[name] = self._value(source, values)
        artifacts = {}
        for name, source in task["inputs"].get("artifacts", {}).items():
            made = source["taskOutputArtifact"]
            artifacts[name] = {"artifacts": [self.artifacts[made["producerTask"], made["outputArtifactKey"]]]}
        return {
            "parameterValues": {name: _number(value) for name, value in given.items() if value is not None},
            "artifacts": artifacts,
        }

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
                        "uri": f"minio://mlpipeline/v2/artifacts/run-1/{task}/{name}",
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
        for name, definition in definitions.get("parameters", {}).items():
            text = (scratch / OUTPUTS.removeprefix("/tmp/") / name).read_text()
            as_text = definition["parameterType"] == "STRING"
            self.parameters[task, name] = text if as_text else json.loads(text)


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
