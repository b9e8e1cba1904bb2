"""What the pod of `partition_graph` does: fetches the graph, divides it, gives back what the step writes."""

import json
import tempfile
from pathlib import Path

from .._files import Folder, local_path
from .._launch import Job, Replica, Role
from .._launch.hand_over import HandOver
from .._launch.pod import PodPlace, PodWork, orders_of
from .config import PartitionConfig
from .pod_plan import GRAPH, GROUP, METRICS, PARTITIONS, REPORT, STEP

_JOB = "job.json"


def partition(place: PodPlace, document: str) -> PodWork:  # noqa: ARG001  there is one pod
    """Prepares the pod's only process.

    Args:
        place: where the pod stands.
        document: made by `pod_plan.planned`.

    Raises:
        InputError: the graph cannot be fetched.
    """
    body = json.loads(document)
    hand_over = HandOver(orders_of(document).hand_over)
    work = Path(tempfile.mkdtemp(prefix="geokfp-"))
    graph = local_path(body["graph"])
    if graph is None:
        graph = work / GRAPH
        Folder(body["graph"]).fetch_artifact(graph)
    job = {"config": body["config"], "graph": str(graph), "work": str(work)}
    (work / _JOB).write_text(json.dumps(job), encoding="utf-8")

    def finish() -> None:
        if body["partitions"]:
            Folder(body["partitions"]).put_artifact(work / PARTITIONS)
        else:
            hand_over.put_folder(work / PARTITIONS, PARTITIONS, anew=True)
        for name in (REPORT, METRICS):
            hand_over.put_file(work / name, name)

    replica = Replica(name=GROUP, arguments=(str(work / _JOB),))
    role = Role(name=GROUP, target=f"{__name__}:main", replicas=(replica,))
    return PodWork(
        job=Job(name=STEP, roles=(role,), deadline_s=float(body["timeout_s"])),
        log_folder=work / "logs",
        finish=finish,
    )


def main(arguments: list[str]) -> None:
    """Divides the graph, as a process of its own.

    Args:
        arguments: path of the job that `partition` wrote.
    """
    from .run import divide

    job = json.loads(Path(arguments[0]).read_text(encoding="utf-8"))
    work = Path(job["work"])
    result = divide(
        PartitionConfig(**job["config"]),
        Path(job["graph"]),
        partitions=work / PARTITIONS,
        report=work / REPORT,
    )
    (work / METRICS).write_text(json.dumps(result.metrics), encoding="utf-8")
