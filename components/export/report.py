"""The HTML report of an export."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from .._report import Report, plots

_SMALLEST = 1e-10
"""Differences below this, and none at all, are drawn here."""


def write_report(
    path: Path,
    card: Mapping[str, Any],
    differences: Mapping[str, npt.NDArray[np.float64]],
    *,
    warnings: Sequence[str],
) -> None:
    """Writes what was exported and how it was checked.

    Args:
        path: the HTML file.
        card: the model card.
        differences: absolute difference of every logit compared, by format.
        warnings: shown on top.
    """
    verification = card["verification"]
    compared = sum(graph["num_compared"] for graph in verification["graphs"])
    report = Report("Export")
    report.facts(
        {
            "Model": card["entry_point"] or card["architecture"],
            "Formats": ", ".join(card["files"]),
            "Largest difference": f"{verification['max_abs_difference']:.2g}",
            "Tolerance": f"{verification['tolerance']:g}",
            "Nodes compared": compared,
        }
    )
    report.warnings(warnings)
    report.section("Files")
    report.table(
        ["Format", "File", "Size", "Largest difference", "Same labels"],
        [
            [
                name,
                entry["file"],
                f"{entry['bytes'] / 1024:,.1f} KiB",
                f"{entry['max_abs_difference']:.2e}",
                f"{entry['same_labels']:.2%}",
            ]
            for name, entry in card["files"].items()
        ],
    )
    report.section("Agreement with the trained model")
    report.paragraph(
        "Each file was loaded again, TorchScript and ONNX in processes that cannot import DGL. Its logits on "
        f"real nodes of {verification['site']} are compared with those of the trained model over DGL blocks."
    )
    report.table(
        ["Graph", "Nodes", "Edges", "Nodes compared"],
        [
            [name, graph["num_nodes"], graph["num_edges"], graph["num_compared"]]
            for name, graph in zip(
                ("seeds and their neighbourhood", "half of those nodes", "one node, no edge"),
                verification["graphs"],
                strict=True,
            )
        ],
    )
    for name, values in differences.items():
        if name != "safetensors":
            report.figure(
                plots.histogram(
                    np.log10(np.maximum(values, _SMALLEST)).tolist(),
                    x_label="log10 of the absolute difference of a logit",
                    y_label="logits",
                ),
                f"{name}: -10 stands for no difference; the tolerance is at "
                f"{np.log10(verification['tolerance']):.1f}.",
            )
    report.section("How to run it")
    report.paragraph(
        "README.md in the exported model has a program for each file; model_card.json has labels, features, "
        f"metrics and checksums. Give the whole graph, or {card['neighbourhood_hops']} hops of in-neighbours."
    )
    report.write(path)
