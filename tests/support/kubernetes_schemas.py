"""Checks objects as an API server would: unknown fields, types, what is required.

Core kinds against the published schemas; JobSet, TrainJob, DGLJob and the runtime against reduced ones, which
were written from their documented fields and say no to any other, with the pods inside them as core kinds.
"""

import json
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import kubernetes_validate

VERSION = "1.30"
"""Kubernetes release of the core kinds' schemas."""

CUSTOM = {
    "JobSet": "jobset",
    "TrainJob": "trainjob",
    "DGLJob": "dgljob",
    "ClusterTrainingRuntime": "clustertrainingruntime",
}

_SCHEMAS = Path(__file__).parent / "schemas"


class SchemaError(AssertionError):
    """An object that an API server would refuse."""


def check_object(obj: Mapping[str, Any]) -> None:
    """Raises `SchemaError` where the object is not what its kind allows."""
    try:
        if obj["kind"] not in CUSTOM:
            kubernetes_validate.validate(dict(obj), VERSION, strict=True)
            return
        jsonschema.Draft202012Validator(_schema(CUSTOM[obj["kind"]])).validate(obj)
    except (kubernetes_validate.ValidationError, jsonschema.ValidationError) as error:
        raise SchemaError(f"{obj['kind']} {obj['metadata'].get('name')}: {error}") from error
    for core in _core_objects(obj):
        check_object(core)


@cache
def _schema(name: str) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((_SCHEMAS / f"{name}.json").read_text(encoding="utf-8"))
    return loaded


def _core_objects(obj: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """What a custom object holds, as objects whose schemas are published."""
    kind, spec = obj["kind"], obj["spec"]
    name = {"name": obj["metadata"].get("name", "generated")}
    yield {"apiVersion": "v1", "kind": "ConfigMap", "metadata": obj["metadata"]}
    if kind == "JobSet":
        for replicated in spec["replicatedJobs"]:
            template = replicated["template"]
            metadata = {**name, **template.get("metadata", {})}
            yield {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": template["spec"]}
    elif kind == "DGLJob":
        for replicas in spec["dglReplicaSpecs"].values():
            yield {
                "apiVersion": "v1",
                "kind": "PodTemplate",
                "metadata": name,
                "template": replicas["template"],
            }
    elif kind == "ClusterTrainingRuntime" and "template" in spec:
        yield {
            "apiVersion": "jobset.x-k8s.io/v1alpha2",
            "kind": "JobSet",
            "metadata": {**name, **spec["template"].get("metadata", {})},
            "spec": spec["template"]["spec"],
        }
    elif kind == "TrainJob":
        yield from _pods_of_a_train_job(spec, name)


def _pods_of_a_train_job(spec: Mapping[str, Any], name: dict[str, Any]) -> Iterator[dict[str, Any]]:
    trainer = spec.get("trainer", {})
    container = {field: trainer[field] for field in ("image", "command", "args", "env") if field in trainer}
    container |= {"resources": trainer["resourcesPerNode"]} if "resourcesPerNode" in trainer else {}
    yield _pod({**name}, {"containers": [{"name": "node", **container}]})
    for patch in spec.get("runtimePatches", ()):
        template = patch.get("trainingRuntimeSpec", {}).get("template", {})
        for job in template.get("spec", {}).get("replicatedJobs", ()):
            pod = job["template"]["spec"]["template"]
            yield _pod({**name, **pod.get("metadata", {})}, {"containers": [], **pod.get("spec", {})})


def _pod(metadata: dict[str, Any], spec: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
