"""One site's part of `partition_at_sites`: reads its tables, agrees on labels, keeps parts in its store.

What leaves the site is `site.json`::

    {"name", "uri", "num_parts", "num_nodes", "num_edges", "num_train", "num_validation", "num_test",
     "part_bytes", "fingerprint", "halo_hops", "features": {"width", "names"}, "labels": {"names"}, "quality"}
"""

import json
import tempfile
import time
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from ..._launch import progress
from ..._launch.hand_over import HandOver
from ...ingest.assemble import assemble
from ...ingest.config import IngestConfig
from ...ingest.graph import write_graph
from ...partition.config import PartitionConfig
from ...partition.partitions import read_partitions
from ...partition.run import run as partition
from ...training.shared_memory import part_bytes
from ..job import write_json
from .schema import SiteSchema, joined, with_labels

RETRY_S = 0.5
"""Seconds between two looks for what the other sites tell."""
SITE = "site.json"


def main(arguments: list[str]) -> None:
    """Does one site's part.

    Args:
        arguments: path of the site's orders, see `pod_site`.

    Raises:
        InputError: a table that is wrong, or unlike those of the other sites.
        TimeoutError: a site told nothing in time.
    """
    orders = json.loads(Path(arguments[0]).read_text(encoding="utf-8"))
    graph, _ = assemble(IngestConfig(**orders["ingest"]))
    progress(f"{orders['site']}: {graph.num_nodes:,} nodes, {graph.num_edges:,} directed edges")
    hand_over = HandOver(orders["hand_over"])
    hand_over.put_text(_name(orders["site"]), SiteSchema.of(graph).to_json())
    told = await_schemas(hand_over, orders["sites"], timeout_s=orders["start_timeout_s"])
    graph = with_labels(graph, joined(told).label_names)
    with tempfile.TemporaryDirectory(prefix="geokfp-") as folder:
        made, report = Path(folder) / "partitions", Path(folder) / "report.html"
        write_graph(graph, Path(folder) / "graph")
        config = PartitionConfig(**orders["partition"])
        quality = partition(config, Path(folder) / "graph", partitions=made, report=report).metrics
        HandOver(orders["storage"]).put_folder(made, "partitions", anew=True)
        write_json(Path(orders["work"]) / SITE, _told(orders, made, quality))
    progress(f"{orders['site']}: its parts lie in {orders['storage']}")


def await_schemas(
    hand_over: HandOver, sites: Mapping[str, str], *, timeout_s: float
) -> dict[str, SiteSchema]:
    """Returns what all sites told, once all have.

    Raises:
        TimeoutError: one told nothing in time; it is named.
    """
    deadline, found = time.monotonic() + timeout_s, {}
    while missing := [site for site in sites if site not in found]:
        for site in missing:
            if (text := hand_over.get_text(_name(site))) is not None:
                found[site] = SiteSchema.from_json(text)
        if len(found) < len(sites):
            if time.monotonic() > deadline:
                absent = next(site for site in sites if site not in found)
                raise TimeoutError(f"site {absent!r} has not told its labels after {timeout_s:g} s")
            time.sleep(RETRY_S)
    return {site: found[site] for site in sites}


def _name(site: str) -> str:
    return f"schemas/{site.encode().hex()}.json"  # a site's name may hold anything


def _told(orders: Mapping[str, Any], made: Path, quality: Mapping[str, float]) -> dict[str, Any]:
    parts = read_partitions(made, verify=False)
    (site,) = parts.sites
    counts = {
        field.name: getattr(site, field.name) for field in fields(site) if field.name.startswith("num_")
    }
    return {
        **counts,
        "name": orders["site"],
        "uri": f"{orders['storage']}/partitions",
        "part_bytes": part_bytes(site, 0),
        "fingerprint": parts.fingerprint,
        "halo_hops": parts.halo_hops,
        "features": {"width": parts.num_features, "names": list(parts.feature_names)},
        "labels": {"names": list(parts.label_names)},
        "quality": dict(quality),
    }
