"""The HTML report of an export."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from .._report import Report, plots
from .exported_model import WEIGHT_FILES
from .exporter import Words

_SMALLEST = 1e-10
"""Differences below this, and none at all, are drawn here."""


def write_report(
    path: Path,
    card: Mapping[str, Any],
    differences: Mapping[str, npt.NDArray[np.float64]],
    words: Words,
) -> None:
    """Writes what was exported and how it was checked.

    Args:
        path: the HTML file.
        card: the model card.
        differences: absolute difference of every output compared, by file.
        words: what the kind of model has to say.
    """
    verification = card["verification"]
    compared = sum(int(str(case[-1])) for case in words.cases)
    report = Report("Export")
    report.facts(
        {
            "Model": card["entry_point"] or card["architecture"],
            "Formats": ", ".join(card["files"]),
            "Largest difference": f"{verification['max_abs_difference']:.2g}",
            "Tolerance": f"{verification['tolerance']:g}",
            f"{words.units.capitalize()} compared": compared,
        }
    )
    report.warnings(words.warnings)
    report.section("Files")
    report.table(
        ["Format", "File", "Size", "Largest difference", "Same labels"],
        [
            [
                name,
                entry["file"],
                f"{entry['bytes'] / 1024:,.1f} KiB",
                f"{entry['max_abs_difference']:.2e}",
                f"{entry['same_labels']:.2%}" if "same_labels" in entry else "",
            ]
            for name, entry in card["files"].items()
        ],
    )
    report.section("Agreement with the trained model")
    report.paragraph(words.how)
    report.table(list(words.head), [list(case) for case in words.cases])
    for name, values in differences.items():
        if name not in WEIGHT_FILES:
            report.figure(
                plots.histogram(
                    np.log10(np.maximum(values, _SMALLEST)).tolist(),
                    x_label="log10 of the absolute difference of an output",
                    y_label="outputs",
                ),
                f"{name}: -10 stands for no difference; the tolerance is at "
                f"{np.log10(verification['tolerance']):.1f}.",
            )
    report.section("How to run it")
    report.paragraph(
        "README.md in the exported model has a program for each file; model_card.json has labels, features, "
        f"metrics and checksums. {words.use}"
    )
    report.write(path)
