"""`job`: one Indexed batch/v1 Job a group, which any cluster takes, and the default account may create."""

from typing import Any

from ..pods import PodGroup, PodLaunch
from .object_names import checked_hosts, group_name, labels
from .owner import opened_services, owner_service
from .pod_template import pod_template


def hosts(launch: PodLaunch) -> dict[str, tuple[str, ...]]:
    """Returns the DNS names of each group's pods, in order."""
    return checked_hosts(
        {
            group.name: tuple(
                f"{group_name(launch, group)}-{index}.{launch.name}" for index in range(group.num_pods)
            )
            for group in launch.groups
        }
    )


def objects(launch: PodLaunch) -> list[dict[str, Any]]:
    """Returns the objects in the order of their creation; the first owns the others."""
    jobs = [_job(launch, group) for group in launch.groups]
    return [owner_service(launch), *opened_services(launch), *jobs]


def indexed_job_spec(launch: PodLaunch, group: PodGroup, template: dict[str, Any]) -> dict[str, Any]:
    """Returns what a Job of a group's pods is: each runs once, and one that fails ends all.

    Starting again is the launcher's business: it starts all groups together.
    """
    return {
        "completionMode": "Indexed",
        "completions": group.num_pods,
        "parallelism": group.num_pods,
        "backoffLimit": 0,
        "activeDeadlineSeconds": launch.deadline_s,
        "template": template,
    }


def _job(launch: PodLaunch, group: PodGroup) -> dict[str, Any]:
    template = pod_template(launch, group, hosts(launch), subdomain=launch.name)
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": group_name(launch, group),
            "namespace": launch.namespace,
            "labels": labels(launch, group),
        },
        "spec": {
            **indexed_job_spec(launch, group, template),
            "ttlSecondsAfterFinished": launch.ttl_s,
        },
    }
