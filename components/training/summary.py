"""The HTML report of a training. Knows nothing of how it ran."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from .._report import Report, plots
from .outcome import TEST, TRAIN, VALIDATION, Roc

_CURVES = (("train_loss", "val_loss"), ("train_accuracy", "val_accuracy"))
_SPLITS = {TEST: "test", VALIDATION: "validation", TRAIN: "training"}
MAX_CLASSES_DRAWN = 30
"""With more classes the confusion matrix is left out of the page."""


def add_curves(report: Report, history: Sequence[Mapping[str, float]]) -> None:
    """Adds loss and accuracy over the epochs to a report.

    Args:
        report: the report.
        history: one row an epoch, with `epoch` and any of the four curves.
    """
    for names in _CURVES:
        series = {}
        for name in names:
            rows = [row for row in history if name in row]
            if rows:
                series[name.replace("_", " ")] = ([row["epoch"] for row in rows], [row[name] for row in rows])
        if series:
            what = names[0].removeprefix("train_")
            report.figure(plots.lines(series, x_label="epoch", y_label=what), f"{what.capitalize()} by epoch")


def per_class(matrix: npt.NDArray[np.int64], names: Sequence[str]) -> list[list[str]]:
    """Returns a row a class: name, nodes, precision, recall, F1; `-` where undefined."""
    rows = []
    for index, name in enumerate(names):
        right, true, taken = matrix[index, index], matrix[index].sum(), matrix[:, index].sum()
        values = (_share(right, taken), _share(right, true), _share(2 * right, true + taken))
        rows.append([name, str(true), *values])
    return rows


def add_classes(
    report: Report, matrix: npt.NDArray[np.int64], names: Sequence[str], *, split: int, roc: Roc | None
) -> None:
    """Adds the table of classes, the confusion matrix and the ROC curve of one split to a report."""
    report.section(f"Classes, on the {_SPLITS[split]} nodes")
    report.table(["class", "nodes", "precision", "recall", "F1"], per_class(matrix, names))
    if len(names) <= MAX_CLASSES_DRAWN:
        report.figure(plots.confusion_matrix(matrix, names), "Class (row) and predicted class (column)")
    if roc is not None:
        curve = {f"micro average, area {roc.area:.4f}": (roc.false_positive_rate, roc.true_positive_rate)}
        figure = plots.lines(curve, x_label="false positive rate", y_label="true positive rate")
        report.figure(figure, "ROC, each class against the rest")


def write_report(
    path: Path,
    *,
    facts: Mapping[str, object],
    history: Sequence[Mapping[str, float]],
    matrix: npt.NDArray[np.int64],
    label_names: Sequence[str],
    judged: tuple[int, Roc | None],
) -> None:
    """Writes the report of `train_gnn`.

    Args:
        path: the HTML file.
        facts: what is shown on top, by name.
        history: one row an epoch.
        matrix: confusion matrix.
        label_names: name of each class.
        judged: the split that the matrix is of, and its ROC curve.
    """
    report = Report("Training")
    report.facts(dict(facts))
    report.section("Epochs")
    add_curves(report, history)
    add_classes(report, matrix, label_names, split=judged[0], roc=judged[1])
    report.write(path)


def _share(part: float, whole: float) -> str:
    return f"{part / whole:.3f}" if whole else "-"
