"""What the component `export_model` does: write, load again, compare, describe."""

import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from torch import nn

from .._files import InputError, new_directory
from .._launch import progress
from ..partition.partitions import Partitions, read_partitions
from ..training.trained_gnn import TrainedGnn, load_weights, read_trained_gnn
from . import onnx, torchscript
from .config import ExportConfig
from .exported_model import README, USER_CODE, WEIGHTS, seal_exported_model
from .instructions import instructions
from .model_card import model_card
from .plain_form import PlainForm, plain_form
from .real_nodes import Case, block_logits, real_cases
from .report import write_report
from .serving import write_serving
from .verify import FILES, Agreement, compare, run_without_dgl


@dataclass(frozen=True, kw_only=True)
class Inputs:
    """What the step reads."""

    model: Path
    """A trained GNN."""
    partitions: Path
    """Partitions with nodes to check on."""


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
    """Exports a trained GNN and proves that what was written gives the same logits.

    Args:
        config: what to write and how to check it.
        inputs: the trained model, and partitions with real nodes.
        outputs: where to write.

    Raises:
        InputError: an input that is wrong, or model and partitions that do not belong together.
        LogitsDiffer: what was written gives other logits; nothing is left at `outputs.exported`.
        ProcessFailed: what was written could not be loaded and run without DGL.
    """
    trained = read_trained_gnn(inputs.model)
    parts = read_partitions(inputs.partitions)
    _check_fit(trained, parts)
    model = trained.build()
    cases = real_cases(
        parts.sites[0],
        num_features=parts.num_features,
        num_seeds=config.verify_nodes,
        num_layers=trained.source.num_layers,
        seed=config.seed,
    )
    with new_directory(outputs.exported) as folder:
        not_exported = _write(config, trained, model, cases, folder)
        formats = [name for name in config.formats if name not in not_exported]
        agreements = _verify(config, trained, model, cases, folder=folder, formats=formats)
        files = {name: (folder / FILES[name], agreement) for name, agreement in agreements.items()}
        checked = _checked(parts, cases)
        card = model_card(trained, config, files, not_exported, checked)
        write_serving(
            folder,
            formats,
            name=config.model_name,
            num_features=parts.num_features,
            num_classes=parts.num_classes,
        )
        (folder / README).write_text(instructions(card), encoding="utf-8")
        seal_exported_model(folder, card)
    differences = {name: agreement.differences for name, agreement in agreements.items()}
    write_report(outputs.report, card, differences, warnings=_warnings(trained, parts, not_exported))
    return Result(metrics=_metrics(agreements, files={k: card["files"][k]["bytes"] for k in files}))


def _check_fit(trained: TrainedGnn, parts: Partitions) -> None:
    if trained.source.num_features != parts.num_features:
        raise InputError(
            f"model: takes {trained.source.num_features} features, the partitions have {parts.num_features}; "
            "they must be equal"
        )
    if trained.label_names != parts.label_names:
        raise InputError("model: its classes are not those of the partitions; they must be equal")


def _write(
    config: ExportConfig, trained: TrainedGnn, model: nn.Module, cases: Sequence[Case], folder: Path
) -> dict[str, str]:
    """Writes weights, code and formats; returns why formats that were asked for are not there."""
    source = trained.source
    shutil.copyfile(trained.weights, folder / WEIGHTS)
    if source.user_code is not None:
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(source.user_code, folder / USER_CODE, ignore=ignored)
    example = cases[1]
    is_users = bool(source.entry_point)
    form = plain_form(model, is_users=is_users, num_layers=source.num_layers, case=example)
    if form.module is None:
        progress(f"only weights and card: {form.reason}")
        return dict.fromkeys(config.formats, form.reason)
    for name in config.formats:
        _write_format(name, trained, form, example, folder / FILES[name])
        progress(f"wrote {FILES[name]}")
    return {}


def _write_format(name: str, trained: TrainedGnn, form: PlainForm, example: Case, path: Path) -> None:
    if name == "torchscript":
        torchscript.write_torchscript(form, example, path)
    else:
        metadata = {"label_names": list(trained.label_names), "fingerprint": trained.fingerprint}
        onnx.write_onnx(form, example, path, metadata=metadata)


def _verify(
    config: ExportConfig,
    trained: TrainedGnn,
    model: nn.Module,
    cases: Sequence[Case],
    *,
    folder: Path,
    formats: Sequence[str],
) -> dict[str, Agreement]:
    num_layers = trained.source.num_layers
    wanted = [block_logits(model, case, num_layers).numpy() for case in cases]
    again = trained.source.build()
    load_weights(again, folder / WEIGHTS)
    again.eval()
    found = {"safetensors": [block_logits(again, case, num_layers).numpy() for case in cases]}
    with tempfile.TemporaryDirectory(prefix=".verify-", dir=folder.parent) as work:
        found |= run_without_dgl(folder, formats, cases, work=Path(work), timeout_s=float(config.timeout_s))
    agreements = {
        name: compare(FILES[name], logits, wanted, tolerance=config.tolerance)
        for name, logits in found.items()
    }
    for name, agreement in agreements.items():
        progress(f"{FILES[name]}: largest difference of a logit {agreement.largest:.2g}")
    return agreements


def _checked(parts: Partitions, cases: Sequence[Case]) -> dict[str, object]:
    graphs = [
        {
            "num_nodes": len(case.x),
            "num_edges": case.edge_index.shape[1],
            "num_compared": len(case.seeds),
        }
        for case in cases
    ]
    return {"site": parts.sites[0].name, "fingerprint": parts.fingerprint, "graphs": graphs}


def _warnings(trained: TrainedGnn, parts: Partitions, not_exported: Mapping[str, str]) -> list[str]:
    found = [f"No {name}: {reason}." for name, reason in not_exported.items()]
    if trained.fingerprint != parts.fingerprint:
        found.append("The nodes compared are of another graph than the one that the model was trained on.")
    return found


def _metrics(agreements: Mapping[str, Agreement], files: Mapping[str, int]) -> dict[str, float]:
    return {
        "max_abs_difference": max(agreement.largest for agreement in agreements.values()),
        "same_labels": min(agreement.same_labels for agreement in agreements.values()),
        **{f"{name}_bytes": float(size) for name, size in files.items()},
    }
