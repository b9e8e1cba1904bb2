"""What the component `shard_at_sites` does: starts a pod a site, and writes what they tell.

The shards artifact that comes of it is a manifest alone: URIs, counts, feature schema and labels.
"""

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..._files import new_directory, write_manifest
from ..._launch import progress
from ..._launch.launch_step import Surroundings
from ..._report import Report
from ...shard.shards import KIND, VERSION
from ...shard.skew import label_skew
from .pod_plan import SHARD
from .run import told_by_sites
from .shard_config import SiteShardConfig

_OF_ALL = ("task", "features", "labels")
_OF_SITE = ("name", "uri", "num_rows", "num_train", "num_validation", "num_test", "class_counts")


def run(
    config: SiteShardConfig, *, shards: Path, report: Path, surroundings: Surroundings | None = None
) -> dict[str, float]:
    """Has each site read its rows, and writes the artifact and its report.

    Args:
        config: what and how.
        shards: where the shards artifact goes.
        report: where the HTML report goes.
        surroundings: what pods are started with.

    Returns:
        Counts by name, over all sites.

    Raises:
        InputError: an option that is wrong.
        ProcessFailed: a site's pod failed; it is named.
    """
    told = told_by_sites(SHARD, config, surroundings or Surroundings())
    _write(told, config, shards)
    _report(told, report)
    names = ("num_rows", "num_train", "num_validation", "num_test")
    metrics = {name: float(sum(site[name] for site in told)) for name in names}
    progress(f"{len(told)} sites, {metrics['num_rows']:,.0f} rows, which stay there")
    counts = np.array([site["class_counts"] for site in told])
    skew = {"label_skew": label_skew(counts)} if counts.size else {}
    num_classes = float(len(told[0]["labels"]["names"]))
    return {**metrics, "num_sites": float(len(told)), "num_classes": num_classes, **skew}


def _write(told: Sequence[Mapping[str, Any]], config: SiteShardConfig, target: Path) -> None:
    fingerprint = hashlib.sha256("".join(site["fingerprint"] for site in told).encode()).hexdigest()
    body = {name: told[0][name] for name in _OF_ALL}
    body |= {"method": "at_sites", "seed": config.seed, "fingerprint": fingerprint, "warnings": []}
    body |= {"num_rows": sum(site["num_rows"] for site in told)}
    body |= {"sites": [{name: site[name] for name in _OF_SITE} for site in told]}
    with new_directory(target) as folder:
        write_manifest(folder, kind=KIND, version=VERSION, body=body)


def _report(told: Sequence[Mapping[str, Any]], path: Path) -> None:
    report = Report("Rows that stay at their sites")
    report.facts({"Sites": len(told), "Classes": len(told[0]["labels"]["names"])})
    splits = ("num_train", "num_validation", "num_test")
    report.table(
        ["Site", "Store", "Rows", "Training", "Validation", "Test"],
        [
            [site["name"], site["uri"], f"{site['num_rows']:,}", *(f"{site[name]:,}" for name in splits)]
            for site in told
        ],
    )
    report.write(path)
