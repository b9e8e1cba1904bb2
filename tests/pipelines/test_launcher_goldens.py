"""Pipelines compiled for each launcher: whole golden files, strictly pipeline specs.

Those of `local` are the compiled packages that are shipped, which `test_goldens.py` holds.
"""

from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import yaml
from geokfp.components._launch.pods import KINDS
from geokfp.pipelines import PIPELINES, compiled_package
from geokfp.pipelines._command_line.dags import tasks_in_order
from google.protobuf import json_format
from kfp.compiler import Compiler
from kfp.pipeline_spec import pipeline_spec_pb2

GOLDENS = Path(__file__).parent / "goldens"
STORAGE = ("geokfp-data", "/data")
IN_PODS = ("partition-graph", "train-gnn", "geo-train-gnn", "partition-at-sites", "geo-train")
"""Tasks whose components start pods."""
OPTIONS = ("launcher", "hand_over", "namespace", "service_account")


def compiled(name: str, launcher: str, folder: Path) -> str:
    factory = getattr(import_module(f"geokfp.pipelines.{name}.pipeline"), f"make_{name}")
    path = folder / f"{name}.yaml"
    Compiler().compile(factory(launcher=launcher, storage=STORAGE), str(path))
    return path.read_text(encoding="utf-8")


def strictly(text: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Returns the two documents of a package, once their types have taken every field."""
    spec, platform = yaml.load_all(text, yaml.CSafeLoader)
    json_format.ParseDict(spec, pipeline_spec_pb2.PipelineSpec())
    json_format.ParseDict(platform, pipeline_spec_pb2.PlatformSpec())
    return spec, platform


@pytest.mark.parametrize("launcher", KINDS)
@pytest.mark.parametrize("name", ["single_site", "cross_site"])
def test_each_launchers_package_is_what_the_code_compiles_to(
    name: str, launcher: str, tmp_path: Path, update_goldens: bool
) -> None:
    golden, fresh = GOLDENS / f"{name}.{launcher}.yaml", compiled(name, launcher, tmp_path)
    if update_goldens:
        golden.write_text(fresh, encoding="utf-8")
    assert golden.read_text(encoding="utf-8") == fresh, "run `make golden` and look at the difference"
    spec, _ = strictly(fresh)
    assert spec["root"]["inputDefinitions"]["parameters"]["launcher"]["defaultValue"] == launcher


def test_what_no_pipeline_spec_has_is_refused() -> None:
    text = (GOLDENS / "single_site.job.yaml").read_text(encoding="utf-8")
    with pytest.raises(json_format.ParseError, match='no field named "launcher"'):
        strictly(text.replace("\nroot:\n", "\nroot:\n  launcher: job\n"))


@pytest.mark.parametrize("name", PIPELINES)
def test_every_step_that_starts_pods_takes_launcher_and_storage(name: str, tmp_path: Path) -> None:
    spec, platform = strictly(compiled(name, "jobset", tmp_path))
    golden, _ = strictly(compiled_package(name).read_text(encoding="utf-8"))
    golden["root"]["inputDefinitions"]["parameters"]["launcher"]["defaultValue"] = "jobset"
    assert spec == golden
    in_pods = [task for task in tasks_in_order(spec) if task.name in IN_PODS]
    executors = platform["platforms"]["kubernetes"]["deploymentSpec"]["executors"]
    assert in_pods
    for task in in_pods:
        given = task.document["inputs"]["parameters"]
        for option in OPTIONS:
            assert given[option] == {"componentInputParameter": option}
        (mount,) = executors[f"exec-{task.name}"]["pvcMount"]
        assert (mount["constant"], mount["mountPath"]) == STORAGE


@pytest.mark.parametrize("name", PIPELINES)
def test_a_cached_step_is_told_no_run_that_would_be_in_its_key(name: str) -> None:
    spec, _ = strictly(compiled_package(name).read_text(encoding="utf-8"))
    for task in tasks_in_order(spec):
        told = task.document["inputs"].get("parameters", {}).get("run_id")
        if task.name in IN_PODS and not task.document["cachingOptions"]:
            assert told == {"runtimeValue": {"constant": "{{$.pipeline_job_uuid}}"}}
        else:
            assert told is None
