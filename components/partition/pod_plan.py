"""The pod of `partition_graph`, as frozen values: one, as large as its settings say. Starts nothing.

What it is given and gives goes through the launch's hand-over::

    <hand over>/<launch>/
      graph/              only when the artifact lies where the pod cannot read it
      partitions/         only when the output goes where the pod cannot write it; else it does so itself
      report.html
      metrics.json
"""

from collections.abc import Mapping
from pathlib import Path

from .._files import InputError, local_path, sha256
from .._files.manifest import NAME
from .._images import image
from .._launch.launch_options import options_of_work, own_pod
from .._launch.manifests import launch_name
from .._launch.pod import PodOrders
from .._launch.pods import PodGroup, PodLaunch, PodSettings
from .config import PartitionConfig

STEP = "partition_graph"
GROUP = "partition"
GRAPH = "graph"
PARTITIONS = "partitions"
REPORT = "report.html"
METRICS = "metrics.json"
POD = "geokfp.components.partition.pod_partition:partition"
DEADLINE_S = 24 * 3600
"""Seconds that the pod may take; a pipeline's own limit comes before it."""


def planned(
    config: PartitionConfig, inputs: Mapping[str, str], settings: PodSettings
) -> tuple[PodLaunch, ...]:
    """Returns what `partition_graph` starts with a launcher; the same for the same arguments.

    Args:
        config: how to divide, and where.
        inputs: path or URI by name: `graph`, and `partitions`, the URI of the output.
        settings: of the pod.

    Raises:
        InputError: an option that is wrong.
    """
    uri, output = inputs[GRAPH], inputs.get(PARTITIONS, "")
    path = local_path(uri)
    options = options_of_work(config)
    target = output if config.pods_reach(output, settings) else ""
    of_data = _checksum(path) if path else uri
    told = {"options": options, "graph": of_data, **({"to": target} if target else {})}
    name = launch_name(STEP, run_id=config.run_id, task=STEP, inputs=told)
    hand_over = config.hand_over_of(name, output, settings)
    orders = PodOrders.of(config, step=STEP, hand_over=hand_over)
    body = {
        "config": options,
        "graph": uri if config.pods_reach(uri, settings) else f"{hand_over}/{GRAPH}",
        "partitions": target,
        "timeout_s": DEADLINE_S,
    }
    group = PodGroup(
        name=GROUP,
        num_pods=1,
        image=settings.image or image("training"),
        target=POD,
        document=orders.document(body),
        settings=settings,
    )
    return (
        PodLaunch(
            name=name,
            run_id=config.run_id,
            step=STEP,
            namespace=config.pod_namespace(),
            groups=(group,),
            deadline_s=config.start_timeout_s + DEADLINE_S,
            step_pod=own_pod(),
        ),
    )


def _checksum(path: Path) -> str:
    manifest = path / NAME
    if not manifest.is_file():
        raise InputError(f"{path}: no such folder with a {NAME}; a graph artifact is needed")
    return sha256(manifest)
