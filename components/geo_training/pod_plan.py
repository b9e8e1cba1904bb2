"""Plans the pods of a `geo_train_gnn`. Starts nothing."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from .._launch.launch_options import options_of_work
from .._launch.launch_step import Surroundings
from .._launch.manifests import launch_name
from .._launch.pods import PodLaunch, PodSettings
from ..partition.own_part import partitions_at
from ..partition.partitions import Partitions, SitePartitions
from ..training.shared_memory import SAMPLER_BYTES, part_bytes
from .clusters.launching import TreeLaunch, placed_launches, reach_all
from .clusters.pod_tree import Groups
from .clusters.reach import sites_of_step
from .config import GeoTrainingConfig
from .planned_tree import PlannedTree, plan_tree
from .pod_machine import PARTITIONS, TARGET

STEP = "geo_train_gnn"
PREDICTIONS = "predictions"


def planned(
    config: GeoTrainingConfig, inputs: Mapping[str, str], settings: PodSettings
) -> tuple[PodLaunch, ...]:
    """Returns the launches of a step, one a cluster, as `run` starts them.

    Args:
        config: the step's.
        inputs: path or URI of `partitions`, and of the outputs `predictions`, which pods write where they
            reach it, and `model` where `hand_over` is empty.
        settings: of the pods.

    Raises:
        InputError: an input or option that is wrong.
    """
    parts = partitions_at(inputs[PARTITIONS])
    tree = planned_tree(config, parts, Path(), settings)
    launch = planned_launch(config, parts, tree, inputs)
    return tuple(placed.launch for placed in placed_launches(launch, tree))


def within_reach(config: GeoTrainingConfig, parts: Partitions, surroundings: Surroundings) -> Partitions:
    """Returns what is trained on: without sites that cannot be reached, where a quorum allows it.

    Raises:
        ProcessFailed: see `sites_within_reach`.
    """
    within = sites_of_step(config, {site.name: site.num_parts for site in parts.sites}, surroundings)
    return replace(parts, sites=tuple(site for site in parts.sites if site.name in within))


def planned_tree(
    config: GeoTrainingConfig, parts: Partitions, work: Path, settings: PodSettings
) -> PlannedTree:
    """Returns the tree of a step, see `plan_tree`."""
    workers = {site.name: site.num_parts for site in parts.sites}
    groups = Groups({site.name: site.directory.name for site in parts.sites})
    return plan_tree(config, workers, groups, work, settings)


def planned_launch(
    config: GeoTrainingConfig, parts: Partitions, tree: PlannedTree, uris: Mapping[str, str]
) -> TreeLaunch:
    """Returns what the pods of a step are.

    Args:
        config: the step's.
        parts: what it trains on.
        tree: the tree.
        uris: of the artifacts, by name; what pods of all sites reach they read and write themselves.
    """
    at_sites = tree.pod_places.sites.values()
    uri, output = uris.get(PARTITIONS, ""), uris.get(PREDICTIONS, "")
    target = output if not parts.stay_at_sites and reach_all(config, output, at_sites) else ""
    told = {
        "options": options_of_work(config),
        "partitions": parts.fingerprint,
        "parts": list(tree.job.workers.items()),
    }
    told |= {"to": target} if target else {}
    name = launch_name(STEP, run_id=config.run_id, task=STEP, inputs=told)
    hand_over = config.hand_over_of(name, uris.get("model", ""), tree.pod_places.root.settings)
    return TreeLaunch(
        name=name,
        step=STEP,
        options=config,
        timeout_s=config.timeout_s,
        hand_over=hand_over,
        image="training",
        target=TARGET,
        body={
            "partitions": uri if reach_all(config, uri, at_sites) else f"{hand_over}/given/{PARTITIONS}",
            "predictions": target,
            "own": {site.directory.name: site.uri for site in parts.sites if site.uri},
            "label_names": list(parts.label_names),
            "training": name,
        },
        shared_memory_bytes={
            site.directory.name: _part_bytes(site, config.num_samplers)
            for site in parts.sites
            if site.part_bytes or site.config_path.is_file()
        },
    )


def _part_bytes(site: SitePartitions, num_samplers: int) -> int:
    if site.uri:
        return site.part_bytes + num_samplers * SAMPLER_BYTES
    return part_bytes(site, num_samplers)
