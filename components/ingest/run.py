"""Makes a graph artifact of raw tables: read, check, write, report."""

from dataclasses import dataclass
from pathlib import Path

from .._files import new_file
from .._launch import progress
from .assemble import assemble
from .config import IngestConfig
from .graph import write_graph
from .report import num_undirected, write_report


@dataclass(frozen=True, kw_only=True, slots=True)
class IngestResult:
    """What was read."""

    metrics: dict[str, float]
    """Counts by name."""
    fingerprint: str
    """Hash of the graph's contents."""


def run(config: IngestConfig, *, graph: Path, report: Path, fingerprint: Path) -> IngestResult:
    """Reads the tables and writes the graph artifact, its report and its fingerprint.

    Args:
        config: where the tables are and how they are read.
        graph: where the graph artifact goes.
        report: where the HTML report goes.
        fingerprint: where the fingerprint goes, as text.

    Raises:
        InputError: the first thing found wrong with the input; nothing is written then.
    """
    read, edges = assemble(config)
    progress(f"{read.num_nodes:,} nodes, {read.num_edges:,} directed edges, {read.num_features:,} features")
    for warning in read.warnings:
        progress(f"note: {warning}")
    found = write_graph(read, graph)
    write_report(read, report)
    with new_file(fingerprint) as temporary:
        temporary.write_text(found, encoding="ascii")
    metrics = {
        "num_nodes": float(read.num_nodes),
        "num_edges": float(read.num_edges),
        "num_classes": float(read.num_classes),
        "num_features": float(read.num_features),
        "self_loops": float(edges.num_self_loops),
        "duplicate_edges": float(edges.num_duplicates),
    }
    if read.undirected:
        metrics["num_undirected_edges"] = float(num_undirected(read))
    return IngestResult(metrics=metrics, fingerprint=found)
