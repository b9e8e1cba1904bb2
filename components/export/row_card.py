"""The model card of a model over rows. Knows nothing of how the files were written or compared."""

from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

from ..table_training.trained_model import CLASSIFICATION, TrainedModel
from .config import ExportConfig
from .model_card import file_entry, verification
from .verify import Agreement

SYMBOL_TAKES = "data, float32: rows of x, bytes divided by 255"
"""What the symbol of MXNet takes, which training wrote."""


def output_name(trained: TrainedModel) -> str:
    """Returns what the output of the files is called."""
    return "logits" if trained.task == CLASSIFICATION else "values"


def num_outputs(trained: TrainedModel) -> int:
    """Returns how many numbers the model gives a row."""
    return max(trained.source.num_classes, 1)


def row_card(
    trained: TrainedModel,
    config: ExportConfig,
    files: Mapping[str, tuple[Path, Agreement]],
    not_exported: Mapping[str, str],
    checked: Mapping[str, Any],
) -> dict[str, Any]:
    """Returns the card, as JSON.

    Args:
        trained: the trained model.
        config: the options of the export.
        files: each kind's file, and how it compares.
        not_exported: why formats that were asked for are not there.
        checked: facts of the batches that the comparison ran on.
    """
    source = trained.source
    entries = {name: file_entry(path, agreement) for name, (path, agreement) in files.items()}
    if "symbol" in entries:
        entries["symbol"]["takes"] = SYMBOL_TAKES
    packages = ("geokfp", trained.framework, "onnx", "onnxruntime", "numpy")
    return {
        "task": trained.task,
        "framework": trained.framework,
        "architecture": source.algorithm or "user's own",
        "entry_point": source.entry_point,
        "options": dict(source.hyperparameters),
        "inputs": {"x": _input(trained)},
        "outputs": {output_name(trained): _output(trained)},
        "metrics": dict(trained.metrics),
        "data": {"fingerprint": trained.fingerprint},
        "files": entries,
        "not_exported": dict(not_exported),
        "verification": {**checked, **verification(config, files)},
        "versions": {name: version(name) for name in packages},
    }


def _input(trained: TrainedModel) -> dict[str, Any]:
    raw = (
        "bytes as they lay, which the file divides by 255" if trained.feature_dtype == "uint8" else "numbers"
    )
    return {
        "type": trained.feature_dtype,
        "shape": ["num_rows", *trained.source.feature_shape],
        "columns": list(trained.feature_names),
        "meaning": f"{raw}, in the order of the columns trained on",
    }


def _output(trained: TrainedModel) -> dict[str, Any]:
    meaning = "the number predicted of each row"
    if trained.task == CLASSIFICATION:
        meaning = "one row each; softmax gives probabilities, the largest is the class"
    return {
        "type": "float32",
        "shape": ["num_rows", num_outputs(trained)],
        "columns": list(trained.label_names),
        "meaning": meaning,
    }
