"""The HTML report of shards."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .._report import Report, plots
from ..ingest.graph import TEST, TRAIN, VALIDATION, Array
from .assignment import Assignment
from .config import ShardConfig
from .rows import Rows
from .skew import class_counts, distances

_SPLITS = (("train", TRAIN), ("validation", VALIDATION), ("test", TEST))
_MAX_LINES = 8
"""Sites whose labels' distribution is drawn: as many as there are colours."""
_QUANTILES = np.linspace(0, 1, 101)


def write_report(
    rows: Rows,
    assignment: Assignment,
    split: Array,
    config: ShardConfig,
    path: Path,
    metrics: dict[str, float],
) -> None:
    """Writes who got how many rows, of which classes, and how far sites are from being alike."""
    report = Report("Shards")
    shape = " x ".join(f"{size:,}" for size in rows.features.shape[1:])
    facts: dict[str, object] = {"Rows": rows.num_rows, "Sites": len(assignment.site_names)}
    facts |= {"Method": config.method, "Features": f"{shape} ({rows.features.dtype})"}
    if rows.label_names:
        facts["Classes"] = len(rows.label_names)
    facts |= {"Label skew": metrics["label_skew"], "Seed": config.seed}
    report.facts(facts)
    report.warnings(rows.warnings)
    if rows.label_names:
        _classes(report, rows, assignment, split)
    else:
        _numbers(report, rows, assignment, split)
    report.write(path)


def _classes(report: Report, rows: Rows, assignment: Assignment, split: Array) -> None:
    names = assignment.site_names
    counts = class_counts(assignment.sites, rows.labels, len(names), len(rows.label_names))
    held = (counts > 0).sum(axis=1)
    apart = [f"{value:.3f}" for value in distances(counts)]
    _sites(report, assignment, split, ["Classes", "Distance"], [list(map(str, held)), apart])
    report.paragraph(
        "Distance: total variation between the site's classes and those of all rows, 0 where they are alike."
    )
    report.figure(
        plots.heat_map(counts, names, rows.label_names, x_label="class", y_label="site"),
        "Rows of each class at each site, shaded by their share of the site: rows that differ mean that "
        "sites see different data.",
    )


def _numbers(report: Report, rows: Rows, assignment: Assignment, split: Array) -> None:
    own = [rows.labels[assignment.sites == i].astype(np.float64) for i in range(len(assignment.site_names))]
    figures: Sequence[tuple[str, Callable[[Array], Any]]] = [
        ("Mean", np.mean),
        ("Deviation", np.std),
        ("Least", np.min),
        ("Most", np.max),
    ]
    columns = [[f"{figure(values):.4g}" for values in own] for _, figure in figures]
    _sites(report, assignment, split, [name for name, _ in figures], columns)
    shown = own[:_MAX_LINES]
    lines = {
        name: (_QUANTILES.tolist(), np.quantile(values, _QUANTILES).tolist())
        for name, values in zip(assignment.site_names, shown, strict=False)
    }
    left_out = f" (the first {len(shown)} sites)" if len(shown) < len(own) else ""
    report.figure(
        plots.lines(lines, x_label="share of the site's rows", y_label="label at most"),
        f"Labels of each site by rank{left_out}: lines that lie apart mean that sites see different data.",
    )


def _sites(
    report: Report, assignment: Assignment, split: Array, header: Sequence[str], columns: Sequence[list[str]]
) -> None:
    sizes = np.bincount(assignment.sites, minlength=len(assignment.site_names))
    parts = [
        np.bincount(assignment.sites[split == code], minlength=len(assignment.site_names))
        for _, code in _SPLITS
    ]
    report.table(
        ["Site", "Rows", *(name for name, _ in _SPLITS), *header],
        [
            [name, int(sizes[i]), *(int(part[i]) for part in parts), *(column[i] for column in columns)]
            for i, name in enumerate(assignment.site_names)
        ],
    )
