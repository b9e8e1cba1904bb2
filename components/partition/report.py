"""The HTML report of a partitioning."""

from pathlib import Path

import numpy as np

from .._report import Report, plots
from ..ingest.graph import TRAIN, Array, Graph
from .assignment import Assignment
from .config import PartitionConfig
from .quality import cut_matrix

_MEANING = {
    "edge_cut_fraction": "edges between parts, of all edges",
    "site_edge_cut_fraction": "edges between sites, of all edges; they are left out of training",
    "boundary_edges": "number of edges between sites",
    "node_balance": "nodes of the largest part over the mean (1 = even)",
    "edge_balance": "edges of the largest part over the mean",
    "train_balance": "training nodes of the largest part over the mean",
    "replication_factor": "own and halo nodes of all parts over nodes",
}


def write_report(
    graph: Graph, assignment: Assignment, quality: dict[str, float], config: PartitionConfig, path: Path
) -> None:
    """Writes what was divided, how, and how well."""
    names = assignment.part_names
    flat = assignment.flat
    nodes = np.bincount(flat, minlength=len(names))
    train = np.bincount(flat[np.asarray(graph.split) == TRAIN], minlength=len(names))
    matrix = cut_matrix(graph, assignment)
    report = Report("Partitions")
    report.facts(
        {
            "Method": config.partition_method,
            "Sites": len(assignment.site_names),
            "Parts per site": assignment.num_parts,
            "Edge cut": f"{quality['edge_cut_fraction']:.2%}",
            "Seed": config.seed,
        }
    )
    report.warnings(_warnings(quality))
    report.table(
        ["Part", "Nodes", "Edges in", "Training nodes"],
        [[name, f"{nodes[i]:,}", f"{matrix[:, i].sum():,}", f"{train[i]:,}"] for i, name in enumerate(names)],
    )
    report.table(
        ["Quality", "Value", "Meaning"],
        [[name, f"{quality[name]:.4g}", text] for name, text in _MEANING.items()],
    )
    shares = {
        "nodes": nodes / nodes.sum(),
        "edges": matrix.sum(axis=0) / max(1, matrix.sum()),
        "training nodes": train / max(1, train.sum()),
    }
    report.figure(
        plots.grouped_bars(names, shares, y_label="share of the whole"),
        "How even the parts are: bars of one height are even.",
    )
    report.figure(
        plots.heat_map(matrix, names, names, x_label="to", y_label="from"),
        "Edges between parts: what lies off the diagonal is cut.",
    )
    report.figure(
        plots.heat_map(
            _class_mix(graph, assignment, len(names)),
            names,
            list(graph.label_names),
            x_label="class",
            y_label="part",
        ),
        "Classes by part (labelled nodes): rows that differ mean that parts see different data.",
    )
    report.write(path)


def _warnings(quality: dict[str, float]) -> list[str]:
    found = []
    if quality["boundary_edges"]:
        found.append(
            f"{quality['boundary_edges']:,.0f} edges ({quality['site_edge_cut_fraction']:.1%}) join "
            "different sites and are left out: a site's rows stay in the site."
        )
    if quality["train_balance"] > 1.5:
        found.append(
            f"Training nodes are uneven: the largest part has {quality['train_balance']:.1f} times the mean."
        )
    return found


def _class_mix(graph: Graph, assignment: Assignment, num_parts: int) -> Array:
    labels = np.asarray(graph.labels)
    labelled = labels >= 0
    pairs = assignment.flat[labelled] * graph.num_classes + labels[labelled]
    return np.bincount(pairs, minlength=num_parts * graph.num_classes).reshape(num_parts, graph.num_classes)
