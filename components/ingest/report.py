"""The HTML report of a graph."""

from pathlib import Path

import numpy as np
import scipy.sparse

from .._report import Report, plots
from .graph import NO_SPLIT, TEST, TRAIN, VALIDATION, Graph

_SPLITS = (("train", TRAIN), ("validation", VALIDATION), ("test", TEST), ("none", NO_SPLIT))
_MAX_CLASSES = 30


def write_report(graph: Graph, path: Path) -> None:
    """Writes counts, warnings, classes by split and the degrees of a graph."""
    report = Report("Graph")
    kind = "sparse" if scipy.sparse.issparse(graph.features) else "dense"
    facts: dict[str, object] = {"Nodes": graph.num_nodes, "Directed edges": graph.num_edges}
    if graph.undirected:
        facts["Undirected edges"] = num_undirected(graph)
    facts |= {"Classes": graph.num_classes, "Features": f"{graph.num_features:,} ({kind})"}
    if graph.site_names:
        facts["Sites"] = len(graph.site_names)
    report.facts(facts)
    report.warnings(graph.warnings)
    _classes(report, graph)
    report.section("Degrees")
    degrees = np.bincount(graph.edges[1], minlength=graph.num_nodes)
    without = int((degrees == 0).sum())
    left_out = f", which leaves out the {without:,} nodes that no edge leads to" if without else ""
    report.figure(
        plots.histogram(degrees, x_label="in-degree", y_label="nodes", log=True),
        f"In-degree of the nodes: mean {degrees.mean():.1f}, median {np.median(degrees):.0f}, "
        f"largest {degrees.max():,}. Both axes are logarithmic{left_out}.",
    )
    report.write(path)


def num_undirected(graph: Graph) -> int:
    """Returns the number of edges of an undirected graph, each counted once."""
    loops = int((graph.edges[0] == graph.edges[1]).sum())
    return (graph.num_edges - loops) // 2 + loops


def _classes(report: Report, graph: Graph) -> None:
    labels, split = np.asarray(graph.labels), np.asarray(graph.split)
    report.section("Classes and splits")
    counts = {
        name: np.bincount(labels[(split == code) & (labels >= 0)], minlength=graph.num_classes).tolist()
        for name, code in _SPLITS
    }
    rows = [
        [name, *(counts[each][i] for each in counts)]
        for i, name in enumerate(graph.label_names[:_MAX_CLASSES])
    ]
    rows.append(["all", *(int((split == code).sum()) for _, code in _SPLITS)])
    report.table(["Class", *counts], rows)
    if graph.num_classes <= _MAX_CLASSES:
        used = {name: values for name, values in counts.items() if any(values)}
        report.figure(
            plots.grouped_bars(graph.label_names, used, y_label="nodes", x_label="class"), "Nodes by class."
        )
