"""`jobset`: a JobSet (jobset.x-k8s.io/v1alpha2) with a replicated job a group."""

from typing import Any

from ..pods import PodGroup, PodLaunch
from .job import indexed_job_spec
from .object_names import checked_hosts, group_name, labels
from .owner import opened_services, owner_service
from .pod_template import pod_template


def hosts(launch: PodLaunch) -> dict[str, tuple[str, ...]]:
    """Returns the DNS names of each group's pods, in order."""
    return checked_hosts(
        {
            group.name: tuple(
                f"{group_name(launch, group)}-0-{index}.{launch.name}" for index in range(group.num_pods)
            )
            for group in launch.groups
        }
    )


def objects(launch: PodLaunch) -> list[dict[str, Any]]:
    """Returns the objects in the order of their creation; the first owns the others.

    The owner Service has the name that the controller would give its own, which it then takes for it.
    """
    job_set = {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": launch.name, "namespace": launch.namespace, "labels": labels(launch)},
        "spec": {
            "network": {
                "enableDNSHostnames": True,
                "subdomain": launch.name,
                "publishNotReadyAddresses": True,
            },
            "successPolicy": {"operator": "All"},
            "failurePolicy": {"maxRestarts": 0},
            "ttlSecondsAfterFinished": launch.ttl_s,
            "replicatedJobs": [_replicated_job(launch, group) for group in launch.groups],
        },
    }
    return [owner_service(launch), *opened_services(launch), job_set]


def _replicated_job(launch: PodLaunch, group: PodGroup) -> dict[str, Any]:
    template = pod_template(launch, group, hosts(launch))
    return {
        "name": group.name,
        "replicas": 1,
        "template": {
            "metadata": {"labels": labels(launch, group)},
            "spec": indexed_job_spec(launch, group, template),
        },
    }
