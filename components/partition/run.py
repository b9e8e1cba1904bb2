"""Partitions a graph artifact: assign, measure, write every site, report."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from .._files import InputError, new_directory, write_manifest
from .._launch import progress
from .._launch.launch_step import Surroundings
from ..ingest.graph import TEST, TRAIN, VALIDATION, Graph, read_graph
from .assignment import Assignment, assign
from .config import PartitionConfig
from .partitions import KIND, VERSION
from .pod_step import divide_in_a_pod
from .quality import measure
from .report import write_report


@dataclass(frozen=True, kw_only=True, slots=True)
class PartitionResult:
    """What the step measured."""

    metrics: dict[str, float]
    """Quality figures by name."""


def run(
    config: PartitionConfig,
    graph: Path,
    *,
    partitions: Path,
    report: Path,
    surroundings: Surroundings | None = None,
) -> PartitionResult:
    """Writes the partitions artifact and its report, here or in a pod.

    Args:
        config: how to divide, and where.
        graph: a graph artifact.
        partitions: where the partitions artifact goes.
        report: where the HTML report goes.
        surroundings: what a pod is started with, by any launcher but `local`.

    Raises:
        InputError: the graph is not what the options need.
        ArtifactError: the graph artifact is damaged or of another version.
        ProcessFailed: the pod failed.
    """
    surroundings = surroundings or Surroundings()
    config = surroundings.in_run(config)
    if config.launches_pods:
        return PartitionResult(metrics=divide_in_a_pod(config, graph, partitions, report, surroundings))
    result = divide(config, graph, partitions=partitions, report=report)
    surroundings.tell_created([])
    return result


def divide(config: PartitionConfig, graph: Path, *, partitions: Path, report: Path) -> PartitionResult:
    """Writes the partitions artifact and its report, in this process.

    Args:
        config: how to divide.
        graph: a graph artifact.
        partitions: where the partitions artifact goes.
        report: where the HTML report goes.

    Raises:
        InputError: the graph is not what the options need.
        ArtifactError: the graph artifact is damaged or of another version.
    """
    loaded = read_graph(graph)
    if config.fingerprint not in ("", loaded.fingerprint):
        raise InputError(
            f"fingerprint is {config.fingerprint!r} but {graph} has {loaded.fingerprint!r}; "
            "it must be equal or empty"
        )
    progress(
        f"dividing {loaded.num_nodes:,} nodes and {loaded.num_edges:,} edges by {config.partition_method}"
    )
    assignment = assign(loaded, config)
    quality = measure(loaded, assignment, halo_hops=config.halo_hops)
    progress(f"{quality['edge_cut_fraction']:.1%} of the edges are cut")
    _write(loaded, assignment, quality, config, partitions)
    write_report(loaded, assignment, quality, config, report)
    return PartitionResult(metrics=quality)


def _write(
    graph: Graph, assignment: Assignment, quality: dict[str, float], config: PartitionConfig, target: Path
) -> None:
    from .dgl_format import write_site

    with new_directory(target) as folder:
        sites = []
        for site, name in enumerate(assignment.site_names):
            rows = np.flatnonzero(assignment.sites == site)
            site_folder = folder / f"site-{site}"
            site_folder.mkdir()
            num_edges = write_site(
                graph,
                rows,
                assignment.parts[rows],
                site_folder,
                num_parts=assignment.num_parts,
                halo_hops=config.halo_hops,
            )
            split = np.asarray(graph.split)[rows]
            sites.append(
                {
                    "name": name,
                    "folder": site_folder.name,
                    "num_parts": assignment.num_parts,
                    "num_nodes": len(rows),
                    "num_edges": num_edges,
                    "num_train": int((split == TRAIN).sum()),
                    "num_validation": int((split == VALIDATION).sum()),
                    "num_test": int((split == TEST).sum()),
                }
            )
            progress(f"wrote {name}: {len(rows):,} nodes, {num_edges:,} edges, {assignment.num_parts} parts")
        body = {
            "fingerprint": graph.fingerprint,
            "halo_hops": config.halo_hops,
            "features": {"width": graph.num_features, "names": list(graph.feature_names)},
            "labels": {"names": list(graph.label_names)},
            "sites": sites,
            "quality": quality,
        }
        write_manifest(folder, kind=KIND, version=VERSION, body=body)
