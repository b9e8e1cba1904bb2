"""Builds the images as `geokfp images` says, and runs each component in its own as a pod of KFP would."""

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from geokfp.components._images import PARENTS, image
from geokfp.pipelines import compiled_package
from support.container_images import BuiltImages
from support.container_node import open_to_all
from support.pod_container import Contained, run_container
from support.pod_steps import PodSteps, Step

pytestmark = [pytest.mark.long, pytest.mark.timeout(1800)]
OF_THE_IMAGE = None
OF_A_NAMESPACE = (1000680000, 0)
"""OpenShift gives each namespace ids of its own, whatever user the image names."""


def in_pods(
    images: BuiltImages, volumes: Mapping[str, Path], user: tuple[int, int] | None = OF_THE_IMAGE
) -> Callable[[Step], object]:
    def run(step: Step) -> str:
        folder = step.scratch.parent / f"{step.name}-bundle"
        folder.mkdir()
        contained = Contained(
            name=f"geokfp-{os.getpid()}-{step.name}",
            image=step.image,
            command=step.command,
            folder=folder,
            mounts={"/minio": step.store, "/tmp": step.scratch, **volumes},
            user=user,
        )
        return run_container(images, contained)

    return run


def run_pipeline(
    name: str, arguments: dict[str, object], run: Callable[[Step], object], folder: Path
) -> PodSteps:
    folder.mkdir()
    steps = PodSteps(package=compiled_package(name), arguments=arguments, folder=folder, run=run)
    steps.run_all()
    return steps


def test_graphs_go_from_tables_to_an_exported_model(built: BuiltImages, data: Path, tmp_path: Path) -> None:
    arguments = {"nodes": "/data/nodes.csv", "edges": "/data/edges.csv", "epochs": 3, "warm_start_epochs": 2}
    run = in_pods(built, {"/data": data})
    steps = run_pipeline("warm_start_cross_site", arguments, run, tmp_path / "run")
    exported = steps.path("export-model", "exported")
    assert {"model.onnx", "model.pt"} <= {path.name for path in exported.rglob("*")}
    assert {path.stat().st_uid for path in exported.rglob("*")} == {10001}
    metrics = steps.artifacts["geo-train-gnn", "metrics"]["metadata"]
    assert metrics


@pytest.mark.parametrize("user", [OF_THE_IMAGE, OF_A_NAMESPACE], ids=["own user", "user of a namespace"])
def test_rows_go_from_a_table_to_an_exported_model(
    built: BuiltImages, data: Path, tmp_path: Path, user: tuple[int, int] | None
) -> None:
    arguments = {"table": "/data/nodes.csv", "epochs": 2, "num_sites": 2}
    steps = run_pipeline(
        "cross_site_table", arguments, in_pods(built, {"/data": data}, user), tmp_path / "run"
    )
    assert "model.onnx" in {path.name for path in steps.path("export-model", "exported").rglob("*")}


def test_a_model_becomes_the_champion_and_stays_it(built: BuiltImages, data: Path, tmp_path: Path) -> None:
    champions = open_to_all(tmp_path / "champions")
    arguments = {
        "champions": "/champions",
        "nodes": "/data/nodes.csv",
        "edges": "/data/edges.csv",
        "time": "2026-11-30T06:00Z",
        "epochs": 3,
        "num_parts": 1,
        "margin": 0.01,
    }
    run = in_pods(built, {"/data": data, "/champions": champions})
    first = run_pipeline("scheduled_retrain", arguments, run, tmp_path / "first")
    assert first.parameters["promote-model", "outcome"] == "promoted"
    assert first.artifacts["promote-model", "metrics"]["metadata"]["generation"] == 1
    later = arguments | {"time": "2026-12-01T06:00Z", "margin": 0.9}
    second = run_pipeline("scheduled_retrain", later, run, tmp_path / "second")
    assert second.parameters["open-window", "champion"].startswith("/champions/")
    assert second.parameters["evaluate-challenger", "Output"] == "keep"
    assert ("promote-model", "outcome") not in second.parameters


PROBE = """
import json, os, shutil, sys
from importlib.metadata import version
from importlib.util import find_spec
tools = ("gcc", "cc", "g++", "c++", "clang", "make", "sshd", "ssh")
packages = ("torch", "dgl", "mxnet", "onnx", "s3fs", "kubernetes")
print(json.dumps({
    "user": os.getuid(),
    "version": version("geokfp"),
    "kfp": version("kfp"),
    "tools": [tool for tool in tools if shutil.which(tool)],
    "writable": [folder for folder, _, _ in os.walk(sys.prefix) if os.stat(folder).st_mode & 0o022],
    "packages": [name for name in packages if find_spec(name)],
    "source": os.path.exists("/source"),
}))
"""
PACKAGES = {
    "base": [],
    "training": ["torch", "dgl", "s3fs", "kubernetes"],
    "geomx": ["torch", "mxnet", "s3fs", "kubernetes"],
    "export": ["torch", "dgl", "mxnet", "onnx", "s3fs", "kubernetes"],
}


@pytest.mark.parametrize("name", PARENTS)
def test_it_holds_what_its_pods_need_and_no_more(built: BuiltImages, name: str, tmp_path: Path) -> None:
    mounts = {"/tmp": tmp_path / "scratch"}
    for folder in ("scratch", "bundle"):
        (tmp_path / folder).mkdir(mode=0o777)
    (tmp_path / "scratch").chmod(0o777)
    probe = Contained(
        name=f"geokfp-{os.getpid()}-probe-{name}",
        image=image(name),
        command=["python3", "-c", PROBE],
        folder=tmp_path / "bundle",
        mounts=mounts,
    )
    text = run_container(built, probe)
    labels = built.config(image(name))["Labels"]
    found = json.loads(text)
    assert found == {
        "user": 10001,
        "version": labels["org.opencontainers.image.version"],
        "kfp": "2.17.3",
        "tools": [],
        "writable": [],
        "packages": PACKAGES[name],
        "source": False,
    }
    assert labels["org.opencontainers.image.title"] == f"geokfp-{name}"
    assert image(name).endswith(f":{found['version']}")
