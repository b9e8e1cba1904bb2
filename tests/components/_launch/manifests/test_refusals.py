"""Launches that a kind cannot start are refused in one line, before anything is sent."""

import re
from typing import Any

import pytest
from geokfp.components._files import InputError
from geokfp.components._launch.manifests import MANIFESTS
from geokfp.components._launch.manifests.quantity import bytes_of
from geokfp.components._launch.pods import PodSettings
from support.pod_launches import pod_group, pod_launch

every_kind = pytest.mark.parametrize("kind", MANIFESTS)
SHM = ({"name": "shm", "mountPath": "/dev/shm/"},)


def refused(kind: str, message: str, *groups: Any) -> None:
    with pytest.raises(InputError, match=re.escape(message)) as raised:
        MANIFESTS[kind].objects(pod_launch(*groups))
    assert "\n" not in str(raised.value)


@every_kind
def test_a_variable_of_the_launchers_is_not_overwritten(kind: str) -> None:
    group = pod_group(settings=PodSettings(env=({"name": "GEOKFP_HOSTS", "value": "{}"},)))
    refused(kind, "pod group 'worker': env sets GEOKFP_HOSTS", group)


@every_kind
def test_a_memory_limit_below_dev_shm_is_refused(kind: str) -> None:
    settings = PodSettings(resources={"limits": {"memory": "1Gi"}})
    group = pod_group(num_pods=1, settings=settings, shared_memory_bytes=2**30 + 1)
    refused(kind, "the memory limit is 1073741824 bytes, and /dev/shm alone takes 1073741825", group)


@every_kind
def test_a_memory_limit_that_is_no_quantity_is_refused(kind: str) -> None:
    settings = PodSettings(resources={"limits": {"memory": "much"}})
    refused(kind, "memory limit is 'much'", pod_group(settings=settings, shared_memory_bytes=1))


@every_kind
def test_a_group_whose_pods_names_would_be_too_long_is_refused(kind: str) -> None:
    refused(kind, "a shorter name is needed", pod_group("a" * 42))


@every_kind
def test_more_pods_than_the_environment_can_name_are_refused(kind: str) -> None:
    refused(kind, "fewer pods are needed", pod_group(num_pods=2500))


@pytest.mark.parametrize("kind", ["job", "jobset"])
def test_a_mount_of_dev_shm_that_is_given_is_kept_alone(kind: str) -> None:
    volumes = ({"name": "shm", "emptyDir": {"medium": "Memory"}},)
    group = pod_group(settings=PodSettings(volumes=volumes, volume_mounts=SHM), shared_memory_bytes=2**30)
    text = str(MANIFESTS[kind].objects(pod_launch(group)))
    assert "geokfp-shm" not in text
    assert "/dev/shm/" in text


def test_a_dgl_job_takes_no_account_beside_the_operators() -> None:
    settings = PodSettings(service_account="trainer")
    refused("dgljob", "service_account is 'trainer', allowed: none", pod_group(settings=settings))
    assert MANIFESTS["dgljob"].objects(pod_launch(pod_group(num_pods=1, settings=settings)))


def test_a_dgl_job_takes_no_volume_where_the_operator_mounts_its_own() -> None:
    refused("dgljob", "a volume is mounted at /dev/shm", pod_group(settings=PodSettings(volume_mounts=SHM)))


def test_a_dgl_job_takes_a_memory_limit_of_twice_dev_shm() -> None:
    for limit, fine in (("5Gi", False), ("6G", True)):
        settings = PodSettings(resources={"limits": {"memory": limit}})
        group = pod_group(settings=settings, shared_memory_bytes=3 * 10**9)
        if fine:
            assert MANIFESTS["dgljob"].objects(pod_launch(group))
        else:
            refused("dgljob", "and 3000000000 are needed; allowed: 6G or more", group)


@pytest.mark.parametrize(
    ("quantity", "expected"),
    [
        ("0", 0),
        (7, 7),
        ("128974848", 128974848),
        ("129e6", 129_000_000),
        ("129M", 129_000_000),
        ("123Mi", 128974848),
        ("1.5Gi", 3 * 2**29),
        ("2k", 2000),
        ("1E", 10**18),
        ("1E1", 10),
    ],
)
def test_quantities(quantity: object, expected: int) -> None:
    assert bytes_of(quantity, "memory limit") == expected


@pytest.mark.parametrize("quantity", ["", "Gi", "1GB", "-1", "1 Gi", "0x10", "1K", None])
def test_what_is_no_quantity_is_refused(quantity: object) -> None:
    with pytest.raises(InputError, match="memory limit is"):
        bytes_of(quantity, "memory limit")
