"""What `partition_graph` does with a launcher: hands the graph to the pod, and fetches what it gives."""

import json
from pathlib import Path

from .._files.uri import is_object_store
from .._launch.cluster import Placed
from .._launch.hand_over import HandOver
from .._launch.launch_step import Surroundings, freed, run_launches
from .._launch.pod import orders_of
from .config import PartitionConfig
from .pod_plan import GRAPH, METRICS, PARTITIONS, REPORT, planned


def divide_in_a_pod(
    config: PartitionConfig, graph: Path, partitions: Path, report: Path, surroundings: Surroundings
) -> dict[str, float]:
    """Divides a graph in a pod, and returns the quality figures.

    Args:
        config: how to divide, and where.
        graph: the graph artifact on this machine.
        partitions: where the partitions artifact goes; left out when the pod writes it where it goes
            by its URI.
        report: where the HTML report goes.
        surroundings: the step's.

    Raises:
        InputError: an option that is wrong, or the hand-over cannot be written or read.
        ProcessFailed: the pod failed.
    """
    uri = surroundings.uris.get(GRAPH, "")
    inputs = {**surroundings.uris, GRAPH: uri if is_object_store(uri) else str(graph)}
    (launch,) = planned(config, inputs, surroundings.settings)
    document = launch.groups[0].document
    hand_over, body = HandOver(orders_of(document).hand_over), json.loads(document)
    hand_over.beat()
    if body[GRAPH] != inputs[GRAPH]:
        hand_over.put_folder(graph, GRAPH)
    with freed(hand_over):
        run_launches([(Placed(launch=launch, kind=config.launcher), hand_over)], config, surroundings)
        if not body[PARTITIONS]:
            hand_over.get_folder(PARTITIONS, partitions)
        hand_over.get_file(REPORT, report)
        metrics: dict[str, float] = json.loads(hand_over.get_text(METRICS) or "{}")
        return metrics
