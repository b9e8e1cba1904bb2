"""Holds each component against its config, its README, and use on its own."""

import dataclasses
import inspect
import re
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import yaml
from geokfp import components
from geokfp.components._files import InputError
from geokfp.components._launch import read_failures
from kfp import dsl
from kfp.compiler import Compiler
from support.component_call import call

ROOT = Path(__file__).resolve().parents[2]
CONFIGS = {
    "ingest_graph": ("ingest", "IngestConfig"),
    "partition_graph": ("partition", "PartitionConfig"),
    "shard_table": ("shard", "ShardConfig"),
    "train_gnn": ("training", "TrainingConfig"),
    "geo_train_gnn": ("geo_training", "GeoTrainingConfig"),
    "partition_at_sites": ("geo_training", "SitePartitionConfig"),
    "shard_at_sites": ("geo_training", "SiteShardConfig"),
    "geo_train": ("table_training", "GeoTableConfig"),
    "export_model": ("export", "ExportConfig"),
    "open_window": ("promotion", "WindowConfig"),
    "evaluate_challenger": ("promotion", "EvaluationConfig"),
    "promote_model": ("promotion", "PromotionConfig"),
}
NAMES = sorted(CONFIGS)
URIS = {"ingest_graph": ("nodes", "edges"), "shard_table": ("table",)}
"""Options that name what a component reads, where no artifact does."""
NEEDED: dict[str, dict[str, Any]] = {
    "geo_train": {"algorithm": "mlp"},
    "promote_model": {"champions": "kept", "window": "2026-11-29T00:00:00Z"},
}
"""Options without which a component refuses to run."""
WRONG: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "partition_at_sites": ({"seed": -1}, {"ingest": {"absent": 1}}),
    "shard_at_sites": ({"seed": -1}, {"shard": {"absent": 1}}),
    "open_window": ({"champions": "kept", "window_s": -1}, {"champions": "nowhere://absent"}),
    "evaluate_challenger": ({"margin": -1.0}, {}),
    "promote_model": ({"margin": -1.0}, {}),
}
"""A wrong option and a wrong input, where they are not a seed and what an artifact or a URI names."""


def parameters(name: str) -> dict[str, Any]:
    """Returns a component's parameters that are no artifacts, with their defaults."""
    signature = inspect.signature(getattr(components, name).python_func)
    spec = getattr(components, name).component_spec
    return {
        key: parameter.default
        for key, parameter in signature.parameters.items()
        if key in spec.inputs
        and not spec.inputs[key].type.startswith("system.")
        and spec.inputs[key].type != "TaskConfig"
    }


def config_fields(name: str) -> dict[str, Any]:
    stage, config = CONFIGS[name]
    fields = dataclasses.fields(getattr(import_module(f"geokfp.components.{stage}.config"), config))
    return {
        field.name: field.default_factory()
        if field.default_factory is not dataclasses.MISSING
        else field.default
        for field in fields
    }


def comparable(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def test_all_components_are_held() -> None:
    assert sorted(components.__all__) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_parameters_are_the_configs_fields(name: str) -> None:
    of_config = {key: comparable(value) for key, value in config_fields(name).items()}
    assert parameters(name) == of_config


@pytest.mark.parametrize("name", NAMES)
def test_every_parameter_is_described(name: str) -> None:
    inputs = getattr(components, name).component_spec.inputs
    for parameter in parameters(name):
        assert inputs[parameter].description, parameter


@pytest.mark.parametrize("name", NAMES)
def test_the_readme_lists_the_options(name: str) -> None:
    text = (ROOT / "components" / CONFIGS[name][0] / "README.md").read_text(encoding="utf-8")
    _, of_its_own, section = text.partition(f"\n## {name}\n")  # where a stage has several components
    text = section.partition("\n## ")[0] if of_its_own else text
    rows = re.findall(r"^\| `(\w+)` \| [^|]+ \| `([^`]*)` \| [^|]+ \|$", text, flags=re.MULTILINE)
    assert {key: default for key, default in rows} == {
        key: repr(comparable(default)) for key, default in parameters(name).items()
    }


@pytest.mark.parametrize("name", NAMES)
def test_the_body_is_about_ten_lines(name: str) -> None:
    import ast

    path = ROOT / "components" / CONFIGS[name][0] / "component.py"
    (function,) = [
        n for n in ast.parse(path.read_text()).body if isinstance(n, ast.FunctionDef) and n.name == name
    ]
    statements = [node for node in ast.walk(function) if isinstance(node, ast.stmt)]
    assert len(statements) <= 20


@pytest.mark.parametrize("name", NAMES)
def test_a_wrong_option_and_a_wrong_input_are_recorded_and_nothing_else_is_left(
    name: str, tmp_path: Path
) -> None:
    inputs = getattr(components, name).component_spec.inputs
    absent = tmp_path / "absent"
    given: dict[str, Any] = {key: absent for key in inputs if inputs[key].type.startswith("system.")}
    given |= {key: str(absent) for key in URIS.get(name, ())} | NEEDED.get(name, {})
    option, source = WRONG.get(name, ({"seed": -1}, {}))
    for wrong, named in ((option, list(option)[-1]), (source, "absent")):
        with pytest.raises(InputError):
            call(name, tmp_path / "step", **{**given, **wrong})
        (record,) = read_failures(tmp_path)
        assert record.step == name
        assert named in record.cause
        assert [path.name for path in (tmp_path / "step").iterdir()] == ["error.json"]


@pytest.mark.parametrize("name", NAMES)
def test_it_is_a_pipeline_alone_fed_by_importers(name: str, tmp_path: Path) -> None:
    component = getattr(components, name)
    artifacts = {
        key: getattr(dsl, spec.type.split("@")[0].removeprefix("system."))
        for key, spec in component.component_spec.inputs.items()
        if spec.type.startswith("system.")
    }

    @dsl.pipeline(name="alone")
    def alone(uri: str = "s3://bucket/artifact"):
        arguments = {
            key: dsl.importer(artifact_uri=uri, artifact_class=kind, reimport=False).output
            for key, kind in artifacts.items()
        }
        component(**arguments)

    Compiler().compile(alone, str(tmp_path / "alone.yaml"))
    spec = yaml.safe_load((tmp_path / "alone.yaml").read_text())
    assert name.replace("_", "-") in spec["root"]["dag"]["tasks"]


@pytest.mark.parametrize("name", NAMES)
def test_it_needs_no_installation_at_run_time_and_names_its_image(name: str) -> None:
    container = getattr(components, name).component_spec.implementation.container
    assert re.fullmatch(r"geokfp-(training|geomx|export):\d+\.\d+\.\d+", container.image)
    assert not any("pip install" in part for part in container.command)


@pytest.mark.parametrize(
    ("name", "artifacts"),
    [
        ("partition_graph", {"graph", "partitions"}),
        ("train_gnn", {"partitions", "model", "predictions"}),
        ("geo_train_gnn", {"partitions", "model", "predictions"}),
        ("geo_train", {"model", "predictions"}),
    ],
)
def test_pods_are_told_where_artifacts_lie(
    name: str, artifacts: set[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: dict[str, str] = {}

    def run(*given: Any, surroundings: Any = None, **outputs: Any) -> None:
        seen.update((surroundings or given[-1]).uris)
        raise InputError("seen")

    monkeypatch.setattr(f"geokfp.components.{CONFIGS[name][0]}.run.run", run)
    inputs = {key: tmp_path / key for key in ("graph", "partitions", "shards")}
    where = {"launcher": "job", "run_id": "r", "namespace": "n", "hand_over": "/data"}
    across = {} if name in ("partition_graph", "train_gnn") else {"plain_text": True}
    with pytest.raises(InputError, match="seen"):
        call(name, tmp_path, **inputs, **where, **across, **NEEDED.get(name, {}))
    assert seen == {key: str(tmp_path / key) for key in artifacts}
