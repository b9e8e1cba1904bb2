"""`geokfp manifests`: what it writes, an API server takes, and gives no more rights than were asked for."""

import inspect
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from geokfp.pipelines._command_line.errors import UsageError
from geokfp.pipelines._command_line.manifests_command import manifests
from support.kubernetes_schemas import check_object
from support.pod_launches import every_setting

FILES = ["example-secrets", "example-storage", "network-policy", "role", "training-runtime"]


def written(folder: Path) -> dict[str, list[dict[str, Any]]]:
    return {path.stem: list(yaml.safe_load_all(path.read_text())) for path in sorted(folder.iterdir())}


def rules(objects: dict[str, list[dict[str, Any]]]) -> dict[str, list[str]]:
    role = objects["role"][0]
    return {f"{group}/{name}": rule["verbs"] for rule in role["rules"] for group, name in resources(rule)}


def resources(rule: dict[str, list[str]]) -> list[tuple[str, str]]:
    return [(group, name) for group in rule["apiGroups"] for name in rule["resources"]]


def test_all_that_is_written_is_taken_by_an_api_server(tmp_path: Path) -> None:
    manifests(output=tmp_path, namespace="team", root_port=7070)
    objects = written(tmp_path)
    assert list(objects) == FILES
    for name, documents in objects.items():
        for document in documents:
            check_object(document)
            assert document["metadata"].get("namespace") == (None if name == "training-runtime" else "team")


def test_the_command_prints_the_same_as_it_writes(tmp_path: Path) -> None:
    manifests(output=tmp_path)
    command = [sys.executable, "-m", "geokfp.pipelines._command_line", "manifests"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
    printed = list(yaml.safe_load_all(done.stdout))
    assert sorted(printed, key=str) == sorted(
        (d for many in written(tmp_path).values() for d in many), key=str
    )


@pytest.mark.parametrize(
    ("kind", "resource"),
    [
        ("job", "batch/jobs"),
        ("jobset", "jobset.x-k8s.io/jobsets"),
        ("trainjob", "trainer.kubeflow.org/trainjobs"),
        ("dgljob", "qihoo.net/dgljobs"),
    ],
)
def test_a_kind_has_the_rights_of_its_own_objects_alone(tmp_path: Path, kind: str, resource: str) -> None:
    manifests(output=tmp_path, launcher=[kind])
    objects = written(tmp_path)
    assert set(rules(objects)) == {"/services", "/pods", "/pods/log", "/events", resource}
    assert "*" not in str(objects["role"])
    assert ("training-runtime" in objects) == (kind == "trainjob")


def test_the_binding_is_of_the_account_that_was_named(tmp_path: Path) -> None:
    manifests(output=tmp_path, namespace="site", service_account="steps", service_account_namespace="root")
    binding = written(tmp_path)["role"][1]
    assert binding["subjects"] == [{"kind": "ServiceAccount", "name": "steps", "namespace": "root"}]
    assert binding["metadata"]["namespace"] == "site"


def test_the_runtime_is_the_one_that_launches_refer_to(tmp_path: Path) -> None:
    manifests(output=tmp_path, image_prefix="registry.example.com/team/")
    (runtime,) = written(tmp_path)["training-runtime"]
    assert runtime["metadata"]["name"] == every_setting().runtime
    (job,) = runtime["spec"]["template"]["spec"]["replicatedJobs"]
    (container,) = job["template"]["spec"]["template"]["spec"]["containers"]
    assert container["image"].startswith("registry.example.com/team/geokfp-training:")


def test_only_a_roots_own_port_is_open_to_all(tmp_path: Path) -> None:
    manifests(output=tmp_path, root_port=7070)
    pods, root = written(tmp_path)["network-policy"]
    assert [list(rule) for rule in pods["spec"]["ingress"]] == [["from"]]
    assert root["spec"]["ingress"] == [{"ports": [{"protocol": "TCP", "port": 7070}]}]
    assert root["spec"]["podSelector"]["matchLabels"]["geokfp/group"] == "root"
    manifests(output=tmp_path)
    assert len(written(tmp_path)["network-policy"]) == 1


def test_the_help_names_the_port_that_roots_in_pods_listen_at() -> None:
    from geokfp.components.geo_training.clusters.site_pods import ROOT_PORT

    assert f"listens at {ROOT_PORT} in its pod" in inspect.getsource(manifests)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"namespace": "Team"}, "--namespace Team: small letters"),
        ({"namespace": "a" * 64}, "at most 63"),
        ({"service_account": ""}, "--service-account : small letters"),
        ({"service_account_namespace": "a_b"}, "--service-account-namespace a_b"),
        ({"launcher": ["job", "slurm"]}, "--launcher slurm: must be one of job, jobset, trainjob, dgljob"),
        ({"image_prefix": "bad prefix"}, "--image-prefix bad prefix"),
    ],
)
def test_what_is_not_allowed_is_refused_by_name(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        manifests(**options)


def test_a_file_in_the_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="a folder is needed"):
        manifests(output=tmp_path / "file")


def test_an_example_that_was_filled_in_is_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    manifests(output=tmp_path, launcher=["job"])
    secrets, role = tmp_path / "example-secrets.yaml", tmp_path / "role.yaml"
    mine = secrets.read_text().replace("to be filled in", "mine")
    secrets.write_text(mine)
    capsys.readouterr()
    manifests(output=tmp_path, launcher=["jobset"])
    printed = capsys.readouterr()
    assert secrets.read_text() == mine
    assert "jobsets" in role.read_text()
    assert str(secrets) not in printed.out
    assert printed.err == f"geokfp: {secrets} is kept as it is: remove it to have the example again\n"


def test_a_service_account_may_have_dots(tmp_path: Path) -> None:
    manifests(output=tmp_path, service_account="team.runner")
    assert written(tmp_path)["role"][1]["subjects"][0]["name"] == "team.runner"


def test_a_folder_in_a_files_place_is_named(tmp_path: Path) -> None:
    (tmp_path / "role.yaml").mkdir()
    with pytest.raises(UsageError, match=r"role.yaml: Is a directory; a folder is needed"):
        manifests(output=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["role.yaml"]
