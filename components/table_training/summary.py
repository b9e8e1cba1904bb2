"""The HTML report of `geo_train`. Knows nothing of how it ran."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from .._report import Report, plots
from ..geo_training.metrics.report import Measured, add_records
from ..geo_training.summary import Classes
from ..ingest.graph import TEST, TRAIN, VALIDATION
from ..training.summary import MAX_CLASSES_DRAWN, per_class

_CURVES = {
    "train_loss": "training loss of the site's first worker",
    "val_loss": "validation loss",
    "val_accuracy": "validation accuracy",
    "val_rmse": "validation RMSE",
}
_SPLITS = {TEST: "test", VALIDATION: "validation", TRAIN: "training"}


def write_report(
    path: Path,
    facts: Mapping[str, object],
    *,
    history: Sequence[Mapping[str, Any]],
    classes: Classes | None,
    measured: Measured,
) -> None:
    """Writes the report.

    Args:
        path: the HTML file.
        facts: what is shown on top, by name.
        history: one row a site and judged epoch, with `site`, `epoch`, `seconds` and any of the curves.
        classes: how the rows were classified; None for regression.
        measured: what every process measured of itself, and the bytes of the links.
    """
    report = Report("Training over the rows of several sites")
    report.facts(dict(facts))
    _add_curves(report, history)
    add_records(report, measured)
    _add_links(report, measured.num_bytes)
    if classes is not None:
        _add_classes(report, classes)
    report.write(path)


def _add_curves(report: Report, history: Sequence[Mapping[str, Any]]) -> None:
    report.section("Sites over time")
    report.paragraph(
        "At each judged epoch a site's own validation rows judge the weights that all workers last agreed "
        "on. Time runs from the first step."
    )
    sites = list(dict.fromkeys(str(row["site"]) for row in history))
    for key, label in _CURVES.items():
        series = {}
        for site in sites:
            rows = [row for row in history if row["site"] == site and key in row]
            if rows:
                series[site] = ([row["seconds"] for row in rows], [row[key] for row in rows])
        if series:
            figure = plots.lines(series, x_label="seconds", y_label=label.partition(" of ")[0])
            report.figure(figure, f"{label.capitalize()} by time")


def _add_links(report: Report, links: Mapping[str, tuple[int, int]]) -> None:
    report.section("Bytes on each link")
    report.paragraph(
        "Whole frames of the training: first weights, then what the sites exchange. A site's link to the "
        "root is what crosses between data centres."
    )
    rows = []
    for name in sorted(links, key=lambda name: ("/" in name, name)):
        upper = name.partition("/")[0] if "/" in name else "root"
        rows.append([f"{name} to {upper}", *links[name]])
    report.table(["link", "bytes up", "bytes down"], rows)


def _add_classes(report: Report, classes: Classes) -> None:
    report.section(f"Classes, on the {_SPLITS[classes.split]} rows of all sites")
    report.table(["class", "rows", "precision", "recall", "F1"], per_class(classes.matrix, classes.names))
    if len(classes.names) <= MAX_CLASSES_DRAWN:
        figure = plots.confusion_matrix(classes.matrix, classes.names)
        report.figure(figure, "Class (row) and predicted class (column)")
    if classes.roc is not None:
        name = f"micro average, area {classes.roc.area:.4f}"
        curve = {name: (classes.roc.false_positive_rate, classes.roc.true_positive_rate)}
        figure = plots.lines(curve, x_label="false positive rate", y_label="true positive rate")
        report.figure(figure, "ROC, each class against the rest")
