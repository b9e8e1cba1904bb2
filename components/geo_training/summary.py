"""The HTML report of `geo_train_gnn`. Knows nothing of how it ran."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from .._report import Report, plots
from ..training.outcome import Roc
from ..training.summary import add_classes
from .metrics.report import Measured, add_records

_CURVES = {
    "train_loss": "training loss",
    "val_loss": "validation loss",
    "val_accuracy": "validation accuracy",
}


@dataclass(frozen=True, slots=True)
class Links:
    """Bytes of one link in the training over all sites, seen from the end farther from the root."""

    sent_bytes: int
    """Towards the root."""
    received_bytes: int
    """From the root."""

    @property
    def both_ways(self) -> tuple[int, int]:
        """Up and down."""
        return self.sent_bytes, self.received_bytes


@dataclass(frozen=True, slots=True)
class Alone:
    """A site trained alone."""

    best_epoch: int
    """The epoch whose weights were judged."""
    rows: Sequence[Mapping[str, float]]
    """One row an epoch, over the site's workers."""
    test_accuracy: float | None
    """Of the site's model on the test nodes of all sites; None when there is none."""


@dataclass(frozen=True, slots=True)
class Classes:
    """How the test nodes of all sites were classified."""

    matrix: npt.NDArray[np.int64]
    """Nodes of each class (row) by predicted class (column)."""
    names: Sequence[str]
    """Name of each class."""
    split: int
    """The split that was judged."""
    roc: Roc | None
    """ROC curve of the same nodes."""


def write_report(
    path: Path,
    facts: Mapping[str, object],
    *,
    history: Sequence[Mapping[str, float]],
    alone: Mapping[str, Alone],
    classes: Classes,
    measured: Measured,
) -> None:
    """Writes the report.

    Args:
        path: the HTML file.
        facts: what is shown on top, by name.
        history: one row an epoch, over all sites.
        alone: each site trained alone, by site; empty when that was not asked for.
        classes: how the nodes were classified.
        measured: what every process measured of itself, and the bytes of the links.
    """
    report = Report("Training across sites")
    report.facts(dict(facts))
    if alone:
        _add_alone(report, facts, alone)
    report.section("Epochs")
    _add_curves(report, history, alone)
    add_records(report, measured)
    _add_links(report, measured.num_bytes, len(history))
    add_classes(report, classes.matrix, classes.names, split=classes.split, roc=classes.roc)
    report.write(path)


def _add_alone(report: Report, facts: Mapping[str, object], alone: Mapping[str, Alone]) -> None:
    report.section("All sites together, and each site alone")
    report.paragraph(
        "Every model starts from the same weights and is judged on the test nodes of all sites; a site alone "
        "has learned from its own nodes only."
    )
    rows = [["all sites", facts.get("epochs_run", "-"), _shown(facts.get("test_accuracy"))]]
    rows += [[f"{name} alone", len(one.rows), _shown(one.test_accuracy)] for name, one in alone.items()]
    report.table(["trained on", "epochs", "test accuracy"], rows)


def _shown(accuracy: object) -> str:
    return "-" if accuracy is None else f"{accuracy:.4f}"


def _add_curves(report: Report, history: Sequence[Mapping[str, float]], alone: Mapping[str, Alone]) -> None:
    trainings = {"all sites": history, **{f"{name} alone": one.rows for name, one in alone.items()}}
    for key, label in _CURVES.items():
        series = {}
        for name, rows in trainings.items():
            measured = [row for row in rows if key in row]
            if measured:
                series[name] = ([row["epoch"] for row in measured], [row[key] for row in measured])
        if series:
            figure = plots.lines(series, x_label="epoch", y_label=label)
            report.figure(figure, f"{label.capitalize()} by epoch; each training over its own nodes")


def _add_links(report: Report, links: Mapping[str, tuple[int, int]], num_epochs: int) -> None:
    report.section("Bytes on each link")
    report.paragraph(
        "Whole frames of the training over all sites: first weights, gradients, and the sums that tell when "
        "to stop. A site's link to the root is what crosses between data centres."
    )
    rows = []
    for name in sorted(links, key=lambda name: ("/" in name, name)):
        (up, down), upper = links[name], name.partition("/")[0] if "/" in name else "root"
        rows.append([f"{name} to {upper}", up, down, (up + down) // max(1, num_epochs)])
    report.table(["link", "bytes up", "bytes down", "bytes an epoch"], rows)
