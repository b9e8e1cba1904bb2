"""The compiled packages equal what the code compiles to, and say what the UI shows."""

from importlib import import_module
from pathlib import Path

import pytest
import yaml
from geokfp.pipelines import PIPELINES, compiled_package, load_pipeline
from geokfp.pipelines._command_line.dags import tasks_in_order
from google.protobuf import json_format
from kfp.compiler import Compiler
from kfp.pipeline_spec import pipeline_spec_pb2

NEEDED = {"champions", "tables"}
"""Parameters without a default."""
OF_GRAPHS = {"nodes", "edges", "features", "partition_method", "architecture", "epochs", "seed"}
OF_SITES = {"tables", "ingest", "topology", "partition_method", "architecture", "epochs", "seed"}
OF_ROWS = {"table", "images", "labels", "shard_method", "algorithm", "epochs", "seed"}
STEPS = {
    "single_site": ["ingest-graph", "partition-graph", "train-gnn", "export-model"],
    "cross_site": ["ingest-graph", "partition-graph", "geo-train-gnn", "export-model"],
    "warm_start_cross_site": [
        "ingest-graph",
        "partition-graph",
        "train-gnn",
        "geo-train-gnn",
        "export-model",
    ],
    "cross_site_table": ["shard-table", "geo-train", "export-model"],
    "cross_site_at_sites": ["partition-at-sites", "geo-train-gnn", "export-model"],
    "scheduled_retrain": [
        "open-window",
        "ingest-graph",
        "partition-graph",
        "train-gnn",
        "evaluate-challenger",
        "export-model",
        "promote-model",
    ],
}


def documents(name: str) -> list[dict]:
    return list(yaml.safe_load_all(compiled_package(name).read_text(encoding="utf-8")))


def tasks_of(spec: dict) -> dict[str, dict]:
    """All tasks by name, those under a condition among them."""
    return {task.name: dict(task.document) for task in tasks_in_order(spec)}


@pytest.mark.parametrize("name", PIPELINES)
def test_the_compiled_package_is_what_the_code_compiles_to(
    name: str, tmp_path: Path, update_goldens: bool
) -> None:
    fresh = tmp_path / f"{name}.yaml"
    Compiler().compile(load_pipeline(name), str(fresh))
    if update_goldens:
        compiled_package(name).write_bytes(fresh.read_bytes())
    golden = compiled_package(name).read_text(encoding="utf-8")
    assert golden == fresh.read_text(encoding="utf-8"), "run `make golden` and look at the difference"


@pytest.mark.parametrize("name", PIPELINES)
def test_the_package_is_strictly_a_pipeline_spec(name: str) -> None:
    spec, platform = documents(name)
    json_format.ParseDict(spec, pipeline_spec_pb2.PipelineSpec())
    json_format.ParseDict(platform, pipeline_spec_pb2.PlatformSpec())


@pytest.mark.parametrize("name", PIPELINES)
def test_every_parameter_has_a_type_a_default_and_a_description(name: str) -> None:
    parameters = documents(name)[0]["root"]["inputDefinitions"]["parameters"]
    of_kind = {"cross_site_table": OF_ROWS, "cross_site_at_sites": OF_SITES}
    assert set(parameters) >= of_kind.get(name, OF_GRAPHS)
    of_sites = {"single_site": {"num_parts"}, "scheduled_retrain": {"num_parts"}}
    of_sites |= {"cross_site_at_sites": {"workers_per_site"}}
    assert set(parameters) >= of_sites.get(name, {"num_sites", "workers_per_site"})
    for parameter, spec in parameters.items():
        assert spec["parameterType"], parameter
        assert spec.get("description"), parameter
        assert "defaultValue" in spec or parameter in NEEDED, parameter


@pytest.mark.parametrize("name", PIPELINES)
def test_pipelines_and_tasks_have_display_names(name: str) -> None:
    spec = documents(name)[0]
    assert spec["pipelineInfo"]["displayName"] != spec["pipelineInfo"]["name"]
    assert spec["pipelineInfo"]["description"]
    for task, body in (tasks_of(spec) | spec["root"]["dag"]["tasks"]).items():
        assert body["taskInfo"]["name"] != task


@pytest.mark.parametrize("name", PIPELINES)
def test_steps_and_their_policy(name: str) -> None:
    spec, platform = documents(name)
    tasks = tasks_of(spec)
    assert sorted(tasks) == sorted(STEPS[name])
    cached = {task for task, body in tasks.items() if body["cachingOptions"].get("enableCache")}
    assert cached == {"partition-graph"} & set(tasks)
    for task in cached:
        fingerprint = tasks[task]["inputs"]["parameters"]["fingerprint"]
        assert fingerprint["taskOutputParameter"]["producerTask"] == "ingest-graph"
    assert all(body["retryPolicy"]["maxRetryCount"] >= 1 for body in tasks.values())
    limits = platform["platforms"]["kubernetes"]["deploymentSpec"]["executors"]
    assert all(int(limits[f"exec-{task}"]["activeDeadlineSeconds"]) > 0 for task in tasks)


@pytest.mark.parametrize("name", PIPELINES)
def test_the_factory_sets_what_kfp_fixes_at_compile_time(name: str, tmp_path: Path) -> None:
    factory = getattr(import_module(f"geokfp.pipelines.{name}.pipeline"), f"make_{name}")
    Compiler().compile(factory(retries=0, timeout_s=77), str(tmp_path / "p.yaml"))
    spec, platform = yaml.safe_load_all((tmp_path / "p.yaml").read_text())
    limits = platform["platforms"]["kubernetes"]["deploymentSpec"]["executors"]
    training = [task for task in STEPS[name] if "train" in task]
    assert training
    for task in training:
        assert "retryPolicy" not in tasks_of(spec)[task]
        assert limits[f"exec-{task}"]["activeDeadlineSeconds"] == "77"
    assert spec["root"]["inputDefinitions"]["parameters"]["timeout_s"]["defaultValue"] == 77


@pytest.mark.parametrize("name", PIPELINES)
@pytest.mark.parametrize("option", ["timeout_s", "round_timeout_s", "metrics_host", "metrics_port"])
def test_a_training_step_takes_its_times_and_pages_from_the_pipelines_parameters(
    name: str, option: str
) -> None:
    spec = documents(name)[0]
    for task, body in spec["root"]["dag"]["tasks"].items():
        wanted = spec["components"][body["componentRef"]["name"]]["inputDefinitions"]["parameters"]
        if "train" in task and option in wanted:
            assert body["inputs"]["parameters"][option] == {"componentInputParameter": option}


@pytest.mark.parametrize("name", PIPELINES)
def test_no_step_installs_anything(name: str) -> None:
    for executor in documents(name)[0]["deploymentSpec"]["executors"].values():
        assert "pip" not in " ".join(executor["container"]["command"][:3])


def test_compiling_all_pipelines_is_quick() -> None:
    import subprocess
    import sys

    code = (
        "import resource, pathlib, tempfile, geokfp.pipelines as p\n"
        "from kfp.compiler import Compiler\n"
        "for name in p.PIPELINES:\n"
        "    Compiler().compile(p.load_pipeline(name), tempfile.mkdtemp() + '/p.yaml')\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_utime)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert float(done.stdout) < 5


OTHER_DEFAULTS = {"algorithm", "num_sites", "warm_start_epochs", "warm_start_site"}
"""Parameters whose pipelines are about another value than the component alone."""


@pytest.mark.parametrize("name", PIPELINES)
def test_a_parameter_has_its_components_default(name: str) -> None:
    spec = documents(name)[0]
    of_pipeline = spec["root"]["inputDefinitions"]["parameters"]
    for task in tasks_of(spec).values():
        inputs = spec["components"][task["componentRef"]["name"]]["inputDefinitions"]["parameters"]
        for parameter, source in task["inputs"]["parameters"].items():
            given = source.get("componentInputParameter")
            if given and given not in OTHER_DEFAULTS | NEEDED:
                assert of_pipeline[given].get("defaultValue") == inputs[parameter].get("defaultValue"), given
                assert of_pipeline[given]["parameterType"] == inputs[parameter]["parameterType"], given
