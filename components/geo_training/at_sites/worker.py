"""One site's part of `partition_at_sites`: reads its tables, agrees on labels, keeps parts in its store.

What leaves the site is `site.json`::

    {"name", "uri", "num_parts", "num_nodes", "num_edges", "num_train", "num_validation", "num_test",
     "part_bytes", "fingerprint", "halo_hops", "features": {"width", "names"}, "labels": {"names"}, "quality"}
"""

import json
import tempfile
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
from .agreement import agreed_labels
from .pod_site import SITE
from .schema import SiteSchema, with_labels


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
    graph = with_labels(graph, agreed_labels(orders, SiteSchema.of(graph)))
    with tempfile.TemporaryDirectory(prefix="geokfp-") as folder:
        made, report = Path(folder) / "partitions", Path(folder) / "report.html"
        write_graph(graph, Path(folder) / "graph")
        config = PartitionConfig(**orders["partition"])
        quality = partition(config, Path(folder) / "graph", partitions=made, report=report).metrics
        HandOver(orders["storage"]).put_folder(made, "partitions", anew=True)
        write_json(Path(orders["work"]) / SITE, _told(orders, made, quality))
    progress(f"{orders['site']}: its parts lie in {orders['storage']}")


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
