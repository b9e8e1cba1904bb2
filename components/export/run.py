"""What the component `export_model` does: write, load again, compare, describe."""

import json
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from .._files import ArtifactError, new_directory
from .._launch import progress
from ..table_training import trained_model
from ..training import trained_gnn
from .config import ExportConfig
from .exported_model import FILES, README, seal_exported_model
from .exporter import Exporter
from .report import write_report
from .serving import write_serving
from .verify import Agreement


@dataclass(frozen=True, kw_only=True)
class Inputs:
    """What the step reads."""

    model: Path
    """A trained GNN, or a model trained over rows."""
    data: Path
    """Partitions, or shards, with nodes or rows to check on."""


@dataclass(frozen=True, kw_only=True)
class Outputs:
    """Where the step's artifacts go."""

    exported: Path
    """Folder of the exported model."""
    report: Path
    """The HTML report."""


@dataclass(frozen=True, kw_only=True)
class Result:
    """What an export gave, for the component to log."""

    metrics: dict[str, float]
    """Finite values by name."""


def run(config: ExportConfig, inputs: Inputs, outputs: Outputs) -> Result:
    """Exports a trained model and proves that what was written gives the same outputs.

    Args:
        config: what to write and how to check it.
        inputs: the trained model, and data with real nodes or rows.
        outputs: where to write.

    Raises:
        InputError: an input that is wrong, or model and data that do not belong together.
        OutputsDiffer: what was written gives other outputs; nothing is left at `outputs.exported`.
        ProcessFailed: what was written could not be loaded and run alone.
    """
    exporter = _exporter(config, inputs)
    with new_directory(outputs.exported) as folder:
        with tempfile.TemporaryDirectory(prefix=".verify-", dir=folder.parent) as work:
            not_exported = exporter.write(folder, Path(work))
            formats = [name for name in exporter.formats if name not in not_exported]
            agreements = exporter.verify(folder, formats, Path(work))
        for name, agreement in agreements.items():
            progress(f"{FILES[name]}: largest difference of an output {agreement.largest:.2g}")
        files = {name: (folder / FILES[name], agreement) for name, agreement in agreements.items()}
        card = exporter.card(files, not_exported)
        write_serving(folder, formats, name=config.model_name, card=card)
        words = exporter.words(card)
        (folder / README).write_text(words.readme, encoding="utf-8")
        seal_exported_model(folder, card)
    differences = {name: agreement.differences for name, agreement in agreements.items()}
    write_report(outputs.report, card, differences, words)
    return Result(metrics=_metrics(agreements, files={k: card["files"][k]["bytes"] for k in files}))


def _exporter(config: ExportConfig, inputs: Inputs) -> Exporter:
    kind = _kind(inputs.model)
    if kind == trained_model.KIND:
        from .table_export import TableExporter

        return TableExporter(config, inputs.model, inputs.data)
    from .gnn_export import GnnExporter

    return GnnExporter(config, inputs.model, inputs.data)


def _kind(model: Path) -> str:
    """Returns what kind of artifact a folder is.

    Raises:
        ArtifactError: of none that can be exported.
    """
    path, allowed = model / "manifest.json", (trained_gnn.KIND, trained_model.KIND)
    needed = f"a {' or '.join(allowed)} artifact is needed"
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        why = "no such file" if isinstance(error, FileNotFoundError) else f"not JSON ({error})"
        raise ArtifactError(f"{path}: {why}; {needed}") from error
    kind = document.get("kind") if isinstance(document, dict) else type(document).__name__
    if kind not in allowed:
        raise ArtifactError(f"{path}: kind is {kind!r}; {needed}")
    return str(kind)


def _metrics(agreements: Mapping[str, Agreement], files: Mapping[str, int]) -> dict[str, float]:
    same = [each.same_labels for each in agreements.values() if each.same_labels is not None]
    return {
        "max_abs_difference": max(agreement.largest for agreement in agreements.values()),
        **({"same_labels": min(same)} if same else {}),
        **{f"{name}_bytes": float(size) for name, size in files.items()},
    }
