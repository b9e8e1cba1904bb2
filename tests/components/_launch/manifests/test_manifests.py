"""Objects of every kind: whole against golden files, by schema, and the rules that hold for all kinds."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from geokfp.components._launch.manifests import (
    LAUNCH_LABEL,
    MANIFESTS,
    RUN_LABEL,
    owned,
    unescaped,
)
from geokfp.components._launch.pods import KINDS, PodLaunch
from support.kubernetes_schemas import check_object
from support.pod_launches import every_setting, one_group, pod_group, pod_launch

GOLDENS = Path(__file__).parent / "goldens"
LAUNCHES: dict[str, Callable[[], PodLaunch]] = {"one_group": one_group, "every_setting": every_setting}
SIDE_CAR = "sidecar.istio.io/inject"

every_kind = pytest.mark.parametrize("kind", MANIFESTS)
every_launch = pytest.mark.parametrize("launch", [make() for make in LAUNCHES.values()], ids=LAUNCHES)


def pod_templates(obj: Any) -> Iterator[dict[str, Any]]:
    """All pod templates in an object, wherever they are."""
    if isinstance(obj, dict):
        if "containers" in obj.get("spec", {}):
            yield obj
        for value in obj.values():
            yield from pod_templates(value)
    elif isinstance(obj, list):
        for value in obj:
            yield from pod_templates(value)


def test_every_kind_that_a_launcher_names_has_its_manifests() -> None:
    assert tuple(MANIFESTS) == KINDS


@every_kind
@pytest.mark.parametrize("name", LAUNCHES)
def test_the_objects_are_those_of_the_golden_file(kind: str, name: str, update_goldens: bool) -> None:
    fresh = yaml.safe_dump_all(MANIFESTS[kind].objects(LAUNCHES[name]()), sort_keys=False)
    golden = GOLDENS / f"{kind}_{name}.yaml"
    if update_goldens:
        golden.write_text(fresh, encoding="utf-8")
    assert golden.read_text(encoding="utf-8") == fresh, "run with --update-goldens and look at the difference"


@every_kind
@every_launch
def test_an_api_server_takes_the_objects(kind: str, launch: PodLaunch) -> None:
    for obj in MANIFESTS[kind].objects(launch):
        check_object(obj)


@every_kind
@every_launch
def test_the_first_object_owns_the_others_and_names_the_steps_pod(kind: str, launch: PodLaunch) -> None:
    first, *others = MANIFESTS[kind].objects(launch)
    assert (first["kind"], first["metadata"]["name"]) == ("Service", launch.name)
    assert first["spec"]["clusterIP"] == "None"
    assert first["spec"]["publishNotReadyAddresses"] is True
    assert others
    references = first["metadata"].get("ownerReferences", [])
    pod = launch.step_pod
    assert references == (
        [{"apiVersion": "v1", "kind": "Pod", "name": pod.name, "uid": pod.uid}] if pod else []
    )
    for obj in others:
        mine = owned(obj, {**first, "metadata": {**first["metadata"], "uid": "u"}})
        assert mine["metadata"]["ownerReferences"] == [
            {"apiVersion": "v1", "kind": "Service", "name": launch.name, "uid": "u"}
        ]
        check_object(mine)
        assert "ownerReferences" not in obj["metadata"]


@every_kind
@every_launch
def test_all_objects_say_which_run_they_are_of(kind: str, launch: PodLaunch) -> None:
    objects = MANIFESTS[kind].objects(launch)
    assert len({(obj["kind"], obj["metadata"]["name"]) for obj in objects}) == len(objects)
    for obj in objects:
        assert obj["metadata"]["namespace"] == launch.namespace
        assert obj["metadata"]["labels"][LAUNCH_LABEL] == launch.name
        assert obj["metadata"]["name"].startswith(launch.name)
    assert len({obj["metadata"]["labels"][RUN_LABEL] for obj in objects}) == 1


@every_kind
@every_launch
def test_pods_run_once_without_a_side_car_or_rights(kind: str, launch: PodLaunch) -> None:
    templates = [t for obj in MANIFESTS[kind].objects(launch) for t in pod_templates(obj)]
    assert templates
    for template in templates:
        assert template["metadata"]["labels"][SIDE_CAR] == "false"
        assert template["metadata"]["annotations"][SIDE_CAR] == "false"
        assert template["metadata"]["labels"][LAUNCH_LABEL] == launch.name
        if kind == "trainjob":  # its runtime says the rest
            continue
        (container,) = template["spec"]["containers"]
        assert template["spec"]["restartPolicy"] == "Never"
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "runAsNonRoot": True,
            "seccompProfile": {"type": "RuntimeDefault"},
        }


@every_kind
@every_launch
def test_every_pod_has_a_host_name_of_its_own(kind: str, launch: PodLaunch) -> None:
    hosts = MANIFESTS[kind].hosts(launch)
    assert {name: len(names) for name, names in hosts.items()} == {
        group.name: group.num_pods for group in launch.groups
    }
    every = [host for names in hosts.values() for host in names]
    assert len(set(every)) == len(every)
    assert all(len(label) <= 63 for host in every for label in host.split("."))


def environments(obj: Any) -> Iterator[dict[str, str]]:
    """Variables with a value of all containers in an object."""
    if isinstance(obj, dict):
        if any(variable.get("name") == "GEOKFP_GROUP" for variable in obj.get("env", ())):
            yield {entry["name"]: entry.get("value", "") for entry in obj["env"]}
        for value in obj.values():
            yield from environments(value)
    elif isinstance(obj, list):
        for value in obj:
            yield from environments(value)


@every_kind
@every_launch
def test_pods_are_told_their_group_and_where_the_others_are(kind: str, launch: PodLaunch) -> None:
    groups = {group.name: group for group in launch.groups}
    told = list(environments(MANIFESTS[kind].objects(launch)))
    assert {variables["GEOKFP_GROUP"] for variables in told} == set(groups)
    for variables in told:
        group = groups[variables["GEOKFP_GROUP"]]
        assert variables["GEOKFP_TARGET"] == group.target
        assert unescaped(variables["GEOKFP_DOCUMENT"]) == group.document
        hosts = {name: tuple(names) for name, names in json.loads(variables["GEOKFP_HOSTS"]).items()}
        assert hosts == MANIFESTS[kind].hosts(launch)
        assert list(hosts) == list(groups)


@every_kind
def test_a_deadline_is_in_every_object_that_starts_pods(kind: str) -> None:
    for obj in MANIFESTS[kind].objects(one_group())[1:]:
        if obj["kind"] != "Service":
            assert '"activeDeadlineSeconds": 7200' in json.dumps(obj)


@every_kind
def test_nothing_is_shared_between_the_objects_of_two_calls(kind: str) -> None:
    launch = pod_launch(pod_group("a"), pod_group("b"))
    first, second = MANIFESTS[kind].objects(launch), MANIFESTS[kind].objects(launch)
    for template in (t for obj in first for t in pod_templates(obj)):
        for container in template["spec"]["containers"]:
            container.setdefault("securityContext", {})["runAsUser"] = 0
    assert second == MANIFESTS[kind].objects(launch)
