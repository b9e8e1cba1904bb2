"""The options of launching: what is refused, where the hand-over is, and what a task's settings become."""

from pathlib import Path
from typing import Any

import pytest
from geokfp.components._files import InputError
from geokfp.components._launch.cluster import Cluster
from geokfp.components._launch.launch_options import LAUNCH_OPTIONS, LaunchOptions, settings_of
from geokfp.components._launch.own_pod import read_own_pod
from geokfp.components._launch.pods import PodSettings
from kfp import dsl
from support.api_server import ApiServerDouble


@pytest.fixture
def in_a_pod(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KFP_POD_NAME", "step")
    monkeypatch.setenv("KFP_POD_UID", "uid")


def checked(**options: Any) -> LaunchOptions:
    given = LaunchOptions(**options)
    given.check_launch()
    return given


def test_names_that_a_cluster_takes_are_taken() -> None:
    for namespace, account in (("n", "a"), ("9-team", "default-editor"), ("a" * 63, "a." * 126 + "a")):
        assert checked(namespace=namespace, service_account=account).namespace == namespace


def test_local_needs_nothing() -> None:
    assert not checked().launches_pods
    assert "launcher" in LAUNCH_OPTIONS


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"launcher": "pod"}, "launcher 'pod': must be one of local, job, jobset, trainjob, dgljob"),
        ({"start_timeout_s": 0}, "start_timeout_s 0: must be at least 1"),
        ({"orphan_timeout_s": 4}, "orphan_timeout_s 4: must be at least 5"),
        ({"orphan_timeout_s": -1}, "orphan_timeout_s -1: must be at least 5"),
        ({"hand_over": "data"}, "hand_over 'data': must be an absolute path, or an s3://, gs:// or minio://"),
        ({"hand_over": "ftp://host/data"}, "hand_over 'ftp://host/data': must be an absolute path"),
        ({"namespace": "Team_X"}, "namespace 'Team_X': must be small letters, digits and inner hyphens"),
        ({"namespace": "a" * 64}, f"namespace '{'a' * 64}': must be"),
        ({"service_account": "-runner"}, "service_account '-runner': must be small letters"),
        ({"service_account": "a." * 126 + "ab"}, "service_account 'a."),
    ],
)
def test_what_is_not_allowed_is_named(options: dict[str, Any], told: str) -> None:
    with pytest.raises(InputError) as caught:
        checked(**options)
    assert str(caught.value).startswith(told)


def test_the_hand_over_is_where_it_is_said_or_beside_the_output() -> None:
    plain = PodSettings()
    given = checked(hand_over="/data/", launcher="job", run_id="r")
    assert given.hand_over_of("launch", "", plain) == "/data/launch"
    absent = checked(launcher="job", run_id="r")
    assert absent.hand_over_of("l", "minio://b/k/model", plain) == "minio://b/k/model-hand-over/l"
    with pytest.raises(InputError, match=r"hand_over '': must be given, as pods do not see /local/model"):
        absent.hand_over_of("l", "/local/model", plain)


def test_a_path_must_be_on_a_volume_of_the_task(in_a_pod: None) -> None:
    options = checked(hand_over="/data/run", launcher="job", run_id="r")
    mounted = PodSettings(volume_mounts=({"name": "a", "mountPath": "/data"},))
    assert options.hand_over_of("l", "", mounted) == "/data/run/l"
    other = PodSettings(volume_mounts=({"name": "a", "mountPath": "/dat"},))
    with pytest.raises(InputError, match=r"must be on a volume of the task \(mounted: /dat\)"):
        options.hand_over_of("l", "", other)


def test_a_namespace_is_needed_outside_of_a_pod() -> None:
    assert checked(namespace="team").pod_namespace() == "team"
    with pytest.raises(InputError, match="namespace '': must be given"):
        checked().pod_namespace()


def test_pods_get_what_the_task_was_given() -> None:
    options = LaunchOptions(service_account="trainer")
    empty = PodSettings(service_account="trainer")
    assert settings_of(None, options) == settings_of(dsl.TaskConfig(), options) == empty
    given = dsl.TaskConfig(
        resources={"limits": {"nvidia.com/gpu": "1"}},
        env=[{"name": "A", "value": "1"}],
        volumes=[{"name": "v"}],
        volume_mounts=[{"name": "v", "mountPath": "/v"}],
        tolerations=[{"key": "k"}],
        node_selector={"pool": "gpu"},
        affinity={"nodeAffinity": {}},
    )
    assert settings_of(given, options) == PodSettings(
        resources={"limits": {"nvidia.com/gpu": "1"}},
        env=({"name": "A", "value": "1"},),
        volumes=({"name": "v"},),
        volume_mounts=({"name": "v", "mountPath": "/v"},),
        tolerations=({"key": "k"},),
        node_selector={"pool": "gpu"},
        affinity={"nodeAffinity": {}},
        service_account="trainer",
    )


@pytest.mark.parametrize(
    ("labels", "run"),
    [
        ({"pipeline/runid": "r-1", "workflows.argoproj.io/workflow": "w-1"}, "r-1"),
        ({"workflows.argoproj.io/workflow": "w-1"}, "w-1"),
        ({}, ""),
    ],
)
def test_a_steps_own_pod_tells_image_and_run(tmp_path: Path, labels: dict[str, str], run: str) -> None:
    containers = [{"name": "wait", "image": "argo"}, {"name": "main", "image": "registry/geokfp-training:1"}]
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "step", "namespace": "n", "labels": labels},
        "spec": {"containers": containers, "imagePullSecrets": [{"name": "registry"}]},
    }
    with ApiServerDouble() as double:
        cluster = Cluster(kubeconfig=double.kubeconfig(tmp_path))
        double.store.create("/api/v1/namespaces/n/pods", pod)
        found = read_own_pod(cluster, "n", "step")
        with pytest.raises(InputError, match=r"pod n/other: .* \(there is no such pod\)"):
            read_own_pod(cluster, "n", "other")
        double.fail("GET", "pods", status=403, reason="Forbidden")
        with pytest.raises(InputError, match=r"own pod cannot be read \(403 Forbidden"):
            read_own_pod(cluster, "n", "step")
    assert found.run_id == run
    assert found.images_in(PodSettings(service_account="a")) == PodSettings(
        service_account="a", image="registry/geokfp-training:1", image_pull_secrets=("registry",)
    )
