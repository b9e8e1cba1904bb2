"""What a pod's document says: which replica it is, whether it has started, how it ended; pure."""

import re
from collections.abc import Iterable, Iterator
from typing import Any

from .cluster import Document
from .verdict import describe

NEVER = frozenset(
    {"InvalidImageName", "ErrImageNeverPull", "CreateContainerConfigError", "CreateContainerError"}
)
"""Reasons for which a container waits that no waiting helps."""
PULLING = frozenset({"ErrImagePull", "ImagePullBackOff", "RegistryUnavailable", "ImageInspectError"})
"""Reasons for which a container waits that a second try may cure."""
_INDEX_ANNOTATION = "batch.kubernetes.io/job-completion-index"
_POD_FAILED = re.compile(r"^pod \S+ failed: ")
"""What a pod's own last line begins with (`pod.py`); who failed is told anyway."""
_PARTITIONER = "Partitioner"
_ROLE = "dgl-replica-type"


def is_replica(pod: Document) -> bool:
    """Whether a pod does a replica's work; the DGL Operator runs one that only partitions."""
    labels = pod["metadata"].get("labels") or {}
    return labels.get(_ROLE) != _PARTITIONER and bool(_environment(pod).get("GEOKFP_GROUP"))


def replica_name(pod: Document) -> str:
    """Returns `group/index` of a pod, such as `worker/3`."""
    environment = _environment(pod)
    return f"{environment.get('GEOKFP_GROUP', '?')}/{_index(pod, environment)}"


def container(pod: Document) -> str:
    """Returns the name of the container that does the replica's work."""
    for one in pod["spec"]["containers"]:
        if any(variable["name"] == "GEOKFP_GROUP" for variable in one.get("env") or []):
            return str(one["name"])
    return str(pod["spec"]["containers"][0]["name"])


def phase(pod: Document) -> str:
    """Returns `Pending`, `Running`, `Succeeded`, `Failed` or `Unknown`."""
    return str((pod.get("status") or {}).get("phase", "Pending"))


def has_started(pod: Document) -> bool:
    """Whether it runs or has run."""
    return phase(pod) in {"Running", "Succeeded", "Failed"}


def waiting(pod: Document) -> tuple[str, str]:
    """Returns why a container waits, and the server's words on it; "" for none that waits."""
    for status in _containers(pod):
        found = (status.get("state") or {}).get("waiting")
        if found and found.get("reason"):
            return str(found["reason"]), _one_line(found.get("message", ""))
    return "", ""


def unschedulable(pod: Document) -> str:
    """Returns why no node takes it, or ""."""
    for condition in (pod.get("status") or {}).get("conditions") or []:
        if condition.get("type") == "PodScheduled" and condition.get("status") == "False":
            reason = condition.get("reason", "Unschedulable")
            return f"{reason}: {_one_line(condition.get('message', ''))}".rstrip(": ")
    return ""


def bad_end(pod: Document) -> str:
    """Returns in one line how a pod ended badly, or ""; also of a container that was started again."""
    for status in _containers(pod):
        for state in (status.get("state") or {}, status.get("lastState") or {}):
            ended = state.get("terminated")
            if ended and (ended.get("exitCode") != 0 or ended.get("reason") == "OOMKilled"):
                return _end(pod, ended)
    if phase(pod) != "Failed":
        return ""
    status = pod.get("status") or {}
    return f"{status.get('reason', 'Failed')}: {_one_line(status.get('message', ''))}".rstrip(": ")


def ended_at(pod: Document) -> str:
    """Returns when its container ended, as the server writes times (they sort as text), or ""."""
    times = [
        str((status.get("state") or {}).get("terminated", {}).get("finishedAt") or "")
        for status in _containers(pod)
    ]
    return max(times, default="")


def table(pods: Iterable[Document]) -> list[str]:
    """Returns lines that show pods: replica, name, state, restarts, node."""
    rows = [("replica", "pod", "state", "restarts", "node")]
    for pod in sorted(pods, key=lambda pod: (replica_name(pod), pod["metadata"]["name"])):
        restarts = sum(int(status.get("restartCount", 0)) for status in _containers(pod))
        node = str((pod.get("spec") or {}).get("nodeName", "-"))
        rows.append((replica_name(pod), pod["metadata"]["name"], state(pod), str(restarts), node))
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ]


def state(pod: Document) -> str:
    """Returns a pod's state in a word or a line: how it ended, why it waits, or its phase."""
    if end := bad_end(pod):
        return end.split(":")[0]
    if reason := waiting(pod)[0]:
        return reason
    if phase(pod) == "Pending" and unschedulable(pod):
        return unschedulable(pod).split(":")[0]
    return "Terminating" if "deletionTimestamp" in pod["metadata"] else phase(pod)


def _end(pod: Document, ended: Document) -> str:
    code = int(ended.get("exitCode", 0))
    words = _last_line(ended.get("message", ""))
    if ended.get("reason") == "OOMKilled":
        limits = [
            (container.get("resources") or {}).get("limits", {}).get("memory")
            for container in pod["spec"]["containers"]
        ]
        limit = next((limit for limit in limits if limit), None)
        return f"OOMKilled: it took more memory than {limit or 'its node had'}"
    status = pod.get("status") or {}
    if status.get("reason"):  # such as Evicted, which says more than the signal that it shows as
        return f"{status['reason']}: {_one_line(status.get('message', ''))}".rstrip(": ")
    end = describe(128 - code) if 128 < code < 192 else describe(code)
    return f"{end}: {words}" if words else end


def _environment(pod: Document) -> dict[str, str]:
    found: dict[str, str] = {}
    for container in pod["spec"].get("containers") or []:
        for variable in container.get("env") or []:
            if variable["name"].startswith("GEOKFP_"):
                found.setdefault(variable["name"], str(variable.get("value", "")))
    return found


def _index(pod: Document, environment: dict[str, str]) -> str:
    annotations = pod["metadata"].get("annotations") or {}
    if _INDEX_ANNOTATION in annotations:
        return str(annotations[_INDEX_ANNOTATION])
    if environment.get("GEOKFP_INDEX", "").isdigit():
        return environment["GEOKFP_INDEX"]
    name = str(pod["metadata"]["name"])
    if re.search(r"-launcher$", name):
        return "0"
    if found := re.search(r"-worker-(\d+)$", name):
        return str(int(found[1]) + 1)
    return name


def _containers(pod: Document) -> Iterator[dict[str, Any]]:
    status = pod.get("status") or {}
    for kind in ("initContainerStatuses", "containerStatuses"):
        yield from status.get(kind) or []


def _one_line(text: str) -> str:
    return " ".join(text.split())[:500]


def _last_line(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return _POD_FAILED.sub("", _one_line(lines[-1])) if lines else ""
