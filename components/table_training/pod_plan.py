"""Plans the pods of a `geo_train`. Starts nothing."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from .._launch.launch_options import options_of_work
from .._launch.launch_step import Surroundings
from .._launch.manifests import launch_name
from .._launch.pods import PodLaunch, PodSettings
from ..geo_training.clusters.launching import TreeLaunch, placed_launches, reach_all
from ..geo_training.clusters.pod_tree import Groups
from ..geo_training.clusters.reach import sites_of_step
from ..geo_training.planned_tree import PlannedTree, plan_tree
from ..shard.shards import Shards, read_shards
from .config import GeoTableConfig
from .pod_worker import PREDICTIONS, TARGET

STEP = "geo_train"


def planned(
    config: GeoTableConfig, inputs: Mapping[str, str], settings: PodSettings
) -> tuple[PodLaunch, ...]:
    """Returns the launches of a step, one a cluster, as `run` starts them.

    Args:
        config: the step's.
        inputs: path of `shards`, and URIs of outputs: `predictions`, which pods write if they reach it, and
            `model` where `hand_over` is empty.
        settings: of the pods.

    Raises:
        InputError: an input or option that is wrong.
    """
    shards = read_shards(Path(inputs["shards"]), verify=False, elsewhere=True)
    tree = planned_tree(config, shards, Path(), settings)
    launch = planned_launch(config, shards, tree, inputs)
    return tuple(placed.launch for placed in placed_launches(launch, tree))


def within_reach(config: GeoTableConfig, shards: Shards, surroundings: Surroundings) -> Shards:
    """Returns what is trained on: without sites that cannot be reached, where a quorum allows it.

    Raises:
        ProcessFailed: see `sites_within_reach`.
    """
    within = sites_of_step(config, {site.name: config.num_workers for site in shards.sites}, surroundings)
    return replace(shards, sites=tuple(site for site in shards.sites if site.name in within))


def planned_tree(config: GeoTableConfig, shards: Shards, work: Path, settings: PodSettings) -> PlannedTree:
    """Returns the tree of a step, see `plan_tree`."""
    workers = {site.name: config.num_workers for site in shards.sites}
    groups = Groups({site.name: site.directory.name for site in shards.sites})
    return plan_tree(config, workers, groups, work, settings)


def planned_launch(
    config: GeoTableConfig, shards: Shards, tree: PlannedTree, uris: Mapping[str, str]
) -> TreeLaunch:
    """Returns what the pods of a step are.

    Args:
        config: the step's.
        shards: its rows.
        tree: the tree.
        uris: of its outputs, by name.
    """
    output = uris.get(PREDICTIONS, "")
    reached = not shards.stay_at_sites and reach_all(config, output, tree.pod_places.sites.values())
    target = output if reached else ""
    told = {"options": options_of_work(config), "shards": shards.fingerprint}
    told |= {"to": target} if target else {}
    name = launch_name(STEP, run_id=config.run_id, task=STEP, inputs=told)
    staying = {"label_names": list(shards.label_names), "training": name}
    straight = {PREDICTIONS: target, "label_names": list(shards.label_names)}
    return TreeLaunch(
        name=name,
        step=STEP,
        options=config,
        timeout_s=config.timeout_s,
        hand_over=config.hand_over_of(name, uris.get("model", ""), tree.pod_places.root.settings),
        image="geomx",
        target=TARGET,
        body=staying if shards.stay_at_sites else straight if target else {},
    )
