"""`geokfp compile --kubernetes-manifests`: objects that Kubeflow Pipelines takes from a cluster."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from geokfp.pipelines import PIPELINES, compiled_package
from geokfp.pipelines._command_line.errors import UsageError
from geokfp.pipelines._command_line.pipeline_manifests import ManifestNames
from kfp.pipeline_spec import pipeline_spec_pb2
from support import toy_pipelines
from support.typed_commands import Typed, typed_command


@pytest.fixture
def geokfp(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Typed:
    monkeypatch.chdir(tmp_path)
    return typed_command(monkeypatch, capsys)


def objects(name: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all(Path("out", name).read_text(encoding="utf-8")))


COMPILE = ("compile", "--kubernetes-manifests", "--output", "out")


def test_the_objects_are_whole(geokfp: Typed) -> None:
    given = ["--pipeline-name", "team.cross", "--pipeline-version", "2026.11-a1b2", "--namespace", "team"]
    assert geokfp(*COMPILE, "cross_site", *given, "--image-prefix", "registry.example.com/team").status == 0
    pipeline, version = objects("cross_site.yaml")
    spec, platform = yaml.safe_load_all(compiled_package("cross_site").read_text(encoding="utf-8"))
    for executor in spec["deploymentSpec"]["executors"].values():
        executor["container"]["image"] = "registry.example.com/team/" + executor["container"]["image"]
    about = spec["pipelineInfo"]["description"]
    assert pipeline == {
        "apiVersion": "pipelines.kubeflow.org/v2beta1",
        "kind": "Pipeline",
        "metadata": {"name": "team.cross", "namespace": "team"},
        "spec": {"displayName": spec["pipelineInfo"]["displayName"], "description": about},
    }
    assert version == {
        "apiVersion": "pipelines.kubeflow.org/v2beta1",
        "kind": "PipelineVersion",
        "metadata": {"name": "team.cross-2026.11-a1b2", "namespace": "team"},
        "spec": {
            "displayName": "2026.11-a1b2",
            "description": about,
            "pipelineName": "team.cross",
            "pipelineSpec": spec,
            "platformSpec": platform,
        },
    }


def test_all_pipelines_have_objects_of_their_own(geokfp: Typed) -> None:
    assert geokfp(*COMPILE, "--all").status == 0
    found = [each for name in PIPELINES for each in objects(f"{name}.yaml")]
    names = [(each["kind"], each["metadata"]["name"]) for each in found]
    assert len(set(names)) == 2 * len(PIPELINES)
    assert all(re.fullmatch(r"[a-z0-9][-a-z0-9.]*[a-z0-9]", name) for _, name in names)
    assert not any("namespace" in each["metadata"] for each in found)


def test_a_pipeline_of_ones_own_needs_no_platform(geokfp: Typed, tmp_path: Path) -> None:
    assert geokfp(*COMPILE, toy_pipelines.compile_to(tmp_path)).status == 0
    pipeline, version = objects("toy.yaml")
    assert pipeline["metadata"] == {"name": "toy"}
    assert version["spec"]["pipelineName"] == "toy"
    assert "platformSpec" not in version["spec"]


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (
            ["single_site", "--pipeline-name", "Mine"],
            "--pipeline-name Mine: allowed: lower-case letters, digits",
        ),
        (["single_site", "--pipeline-name", "a" * 254], "at most 253 characters"),
        (
            ["single_site", "--pipeline-version", "1.0_rc"],
            "--pipeline-version 1.0_rc (in the name single-site-1.0",
        ),
        (["single_site", "--pipeline-version", "1."], "--pipeline-version 1. (in the name single-site-1.)"),
        (
            ["single_site", "--namespace", "a.b"],
            "--namespace a.b: allowed: lower-case letters, digits and '-'",
        ),
        (["--all", "--pipeline-name", "mine"], "--pipeline-name mine: allowed: with one pipeline, not "),
    ],
)
def test_names_that_a_cluster_refuses_are_refused_first(given: list[str], says: str, geokfp: Typed) -> None:
    ended = geokfp(*COMPILE, *given)
    assert ended.status == 2
    assert says in ended.err
    assert not Path("out").exists()


def test_names_are_of_objects_only(geokfp: Typed) -> None:
    ended = geokfp("compile", "--output", "out", "single_site", "--namespace", "team")
    assert ended.status == 2
    assert ended.err.endswith("allowed: with --kubernetes-manifests\n")


def test_a_version_of_python_is_a_name() -> None:
    info = pipeline_spec_pb2.PipelineInfo(name="mine")
    options = ManifestNames().options(info, "0.1.0.dev1+a1b2")
    assert options["pipeline_version_name"] == "mine-0.1.0.dev1-a1b2"
    assert options["pipeline_version_display_name"] == "0.1.0.dev1+a1b2"
    assert options["pipeline_display_name"] == "mine"
    with pytest.raises(UsageError, match="--pipeline-version 1\\+1"):
        ManifestNames(version="1+1").options(info, "")


def renamed(path: Path, name: str) -> str:
    text = compiled_package("single_site").read_text(encoding="utf-8")
    path.write_text(text.replace("  name: single-site\n", f"  name: {name}\n"), encoding="utf-8")
    return str(path)


def test_no_file_is_written_outside_the_folder(geokfp: Typed, tmp_path: Path) -> None:
    ended = geokfp("compile", renamed(tmp_path / "a.yaml", "../evil"), "--output", "out")
    says = "geokfp: pipeline '../evil': allowed: a name that a file can have\n"
    assert (ended.status, ended.err) == (2, says)
    assert [path.name for path in tmp_path.iterdir()] == ["a.yaml"]


def test_two_pipelines_of_one_file_are_refused(geokfp: Typed, tmp_path: Path) -> None:
    ended = geokfp("compile", "single_site", renamed(tmp_path / "a.yaml", "single_site"), "--output", "out")
    assert ended.status == 2
    assert "pipelines 'single-site' and 'single_site': both would be out/single_site.yaml" in ended.err
    assert not Path("out").exists()


def test_a_folder_in_the_files_place_is_refused(geokfp: Typed) -> None:
    Path("out/single_site.yaml").mkdir(parents=True)
    ended = geokfp("compile", "single_site", "--output", "out")
    says = "geokfp: --output out: out/single_site.yaml is a folder; allowed: a file, or nothing\n"
    assert (ended.status, ended.err) == (2, says)
