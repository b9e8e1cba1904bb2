"""What the component `partition_at_sites` does: starts a pod a site, and writes what they tell.

The partitions artifact that comes of it is a manifest alone: URIs, counts, feature schema and labels.
"""

import hashlib
import json
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..._files import new_directory, write_manifest
from ..._launch import progress
from ..._launch.launch_step import Surroundings
from ..._report import Report
from ...partition.partitions import KIND, VERSION
from ..clusters.launching import at_places, run_placed
from .at_stores import AtStores
from .config import SitePartitionConfig
from .here import on_this_machine
from .pod_plan import PARTITION, SiteStep, plan
from .pod_site import SITE


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
    told = told_by_sites(PARTITION, config, surroundings or Surroundings())
    _write(told, partitions)
    _report(told, report)
    counts = ("num_nodes", "num_edges", "num_train", "num_validation", "num_test")
    metrics = {name: float(sum(site[name] for site in told)) for name in counts}
    progress(f"{len(told)} sites, {metrics['num_nodes']:,.0f} nodes, which stay there")
    return {**metrics, "num_sites": float(len(told)), "num_classes": float(len(told[0]["labels"]["names"]))}


def told_by_sites(step: SiteStep, config: AtStores, surroundings: Surroundings) -> list[Mapping[str, Any]]:
    """Returns what each site tells of the tables that it has read, in the sites' order.

    Args:
        step: what is done at each.
        config: what and how.
        surroundings: what pods are started with.

    Raises:
        InputError: an option that is wrong.
        ProcessFailed: a site's pod failed; it is named.
    """
    if config.launches_pods:
        return _told_by_pods(step, surroundings.in_run(config), surroundings)
    with on_this_machine(config, surroundings) as (options, around):
        return _told_by_pods(step, options, around)


def _told_by_pods(step: SiteStep, config: AtStores, surroundings: Surroundings) -> list[Mapping[str, Any]]:
    made = plan(step, config, surroundings.settings, surroundings.uris.get(step.output, ""))
    with tempfile.TemporaryDirectory(prefix="geokfp-") as folder, made.launch.freed():
        placed = at_places(made.launch, made.held, 0)
        hand_over = made.launch.attempt(0)
        told = []
        run_placed(made.launch, placed, hand_over, surroundings)
        for _, name, _ in made.held:
            hand_over.get_folder(f"results/{name}-0", Path(folder) / name)
            told.append(json.loads((Path(folder) / name / SITE).read_text(encoding="utf-8")))
    return told


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
