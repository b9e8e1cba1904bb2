"""What the component `partition_at_sites` does: starts a pod a site, and writes what they tell.

The partitions artifact that comes of it is a manifest alone: URIs, counts, feature schema and labels.
"""

import hashlib
import json
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..._files import new_directory, write_manifest
from ..._launch import progress
from ..._launch.launch_options import options_of_work
from ..._launch.launch_step import Surroundings
from ..._launch.manifests import launch_name
from ..._launch.pods import PodLaunch, PodSettings
from ..._report import Report
from ...partition.partitions import KIND, VERSION
from ..clusters.launching import TreeLaunch, at_places, run_placed
from ..clusters.site_pods import GroupPlace, places
from .config import SitePartitionConfig
from .pod_site import TARGET
from .worker import SITE

STEP = "partition_at_sites"


@dataclass(frozen=True, kw_only=True, slots=True)
class Planned:
    """What is started."""

    launch: TreeLaunch
    """What the pods are."""
    held: Sequence[tuple[GroupPlace, str, int]]
    """Place, name and number of pods of each group."""


def run(
    config: SitePartitionConfig, *, partitions: Path, report: Path, surroundings: Surroundings | None = None
) -> dict[str, float]:
    """Has each site read and partition its tables, and writes the artifact and its report.

    Args:
        config: what and how.
        partitions: where the partitions artifact goes.
        report: where the HTML report goes.
        surroundings: what pods are started with.

    Returns:
        Counts by name, over all sites.

    Raises:
        InputError: an option that is wrong.
        ProcessFailed: a site's pod failed; it is named.
    """
    surroundings = surroundings or Surroundings()
    config = surroundings.in_run(config)
    made = plan(config, surroundings.settings, surroundings.uris.get("partitions", ""))
    with tempfile.TemporaryDirectory(prefix="geokfp-") as folder, made.launch.freed():
        placed = at_places(made.launch, made.held, 0)
        hand_over = made.launch.attempt(0)
        told = []
        run_placed(made.launch, placed, hand_over, surroundings)
        for _, name, _ in made.held:
            hand_over.get_folder(f"results/{name}-0", Path(folder) / name)
            told.append(json.loads((Path(folder) / name / SITE).read_text(encoding="utf-8")))
    _write(told, partitions)
    _report(told, report)
    counts = ("num_nodes", "num_edges", "num_train", "num_validation", "num_test")
    metrics = {name: float(sum(site[name] for site in told)) for name in counts}
    progress(f"{len(told)} sites, {metrics['num_nodes']:,.0f} nodes, which stay there")
    return {**metrics, "num_sites": float(len(told)), "num_classes": float(len(told[0]["labels"]["names"]))}


def planned(
    config: SitePartitionConfig, inputs: Mapping[str, str], settings: PodSettings
) -> tuple[PodLaunch, ...]:
    """Returns the launches of a step, one a cluster, as `run` starts them."""
    made = plan(config, settings, inputs.get("partitions", ""))
    return tuple(placed.launch for placed in at_places(made.launch, made.held, 0))


def plan(config: SitePartitionConfig, settings: PodSettings, outputs_uri: str) -> Planned:
    """Plans the pods.

    Raises:
        InputError: options do not go together.
    """
    where = places(config.topology, list(config.tables), settings, "", root_needed=False)
    name = launch_name(STEP, run_id=config.run_id, task=STEP, inputs=options_of_work(config))
    groups = {site: f"site-{index}" for index, site in enumerate(config.tables)}
    orders = {
        group: config.orders(site, f"{where.sites[site].storage.rstrip('/')}/{name}/{group}")
        for site, group in groups.items()
    }
    launch = TreeLaunch(
        name=name,
        step=STEP,
        options=config,
        timeout_s=config.timeout_s,
        hand_over=config.hand_over_of(name, outputs_uri, settings),
        image="training",
        target=TARGET,
        body={"sites": groups, "sites_orders": orders, "timeout_s": config.timeout_s},
    )
    return Planned(launch=launch, held=[(where.sites[site], group, 1) for site, group in groups.items()])


def _write(told: Sequence[Mapping[str, Any]], target: Path) -> None:
    of_all = {name: told[0][name] for name in ("features", "labels", "halo_hops")}
    fingerprint = hashlib.sha256("".join(site["fingerprint"] for site in told).encode()).hexdigest()
    kept = ("name", "uri", "num_parts", "num_nodes", "num_edges", "num_train", "num_validation", "num_test")
    sites = [
        {**{key: site[key] for key in (*kept, "part_bytes")}, "folder": f"site-{index}"}
        for index, site in enumerate(told)
    ]
    names = told[0]["quality"]
    quality = {name: sum(site["quality"][name] for site in told) / len(told) for name in names}
    with new_directory(target) as folder:
        body = {**of_all, "fingerprint": fingerprint, "sites": sites, "quality": quality}
        write_manifest(folder, kind=KIND, version=VERSION, body=body)


def _report(told: Sequence[Mapping[str, Any]], path: Path) -> None:
    report = Report("Partitions that stay at their sites")
    report.facts({"Sites": len(told), "Classes": len(told[0]["labels"]["names"])})
    report.table(
        ["Site", "Store", "Parts", "Nodes", "Edges", "Training nodes", "Edge cut"],
        [
            [
                site["name"],
                site["uri"],
                site["num_parts"],
                f"{site['num_nodes']:,}",
                f"{site['num_edges']:,}",
                f"{site['num_train']:,}",
                f"{site['quality']['edge_cut_fraction']:.2%}",
            ]
            for site in told
        ],
    )
    report.write(path)
