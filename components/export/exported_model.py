"""The exported model artifact: what is handed to whoever serves the model.

Drawing of the folder::

    exported/
      manifest.json          kind geokfp.exported_model, version 1: checksums
      model_card.json        what the model is, its inputs and outputs, labels, metrics, files
      README.md              how to run it
      weights.safetensors    parameters and buffers       (torch)
      model-symbol.json      the graph of a gluon block   (mxnet)
      model-0000.params      its parameters               (mxnet)
      model.pt               TorchScript                  (when asked for, and the model has this form)
      model.onnx             ONNX                         (when asked for, and the model has this form)
      serving/               Triton repository, KServe YAML (when there is one of the two above)
      user_code/             the user's own model's code  (only of a user's model that came with its code)

`model.pt` and `model.onnx` of a GNN take `x` float32 [num_nodes, num_features] and `edge_index` int64
[2, num_edges] and give `logits` float32 [num_nodes, num_classes], without DGL. Those of a model over rows
take `x` [num_rows, ...], float32 or uint8 as the rows lay, and give `logits` float32 [num_rows, num_classes],
or `values` float32 [num_rows, 1] for regression; the symbol takes `data` float32, bytes divided by 255.
Knows nothing of how the files are written.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .._files import ArtifactError, read_manifest, write_manifest

KIND = "geokfp.exported_model"
VERSION = 1
CARD = "model_card.json"
README = "README.md"
WEIGHTS = "weights.safetensors"
SYMBOL, PARAMETERS = "model-symbol.json", "model-0000.params"
FILES = {
    "safetensors": WEIGHTS,
    "symbol": SYMBOL,
    "parameters": PARAMETERS,
    "torchscript": "model.pt",
    "onnx": "model.onnx",
}
"""What each kind of file is called."""
WEIGHT_FILES = ("safetensors", "symbol", "parameters")
"""Kinds that hold the weights and are always written, by framework; the others are formats."""
USER_CODE = "user_code"
CARD_KEYS = ("architecture", "data", "files", "inputs", "metrics", "not_exported", "outputs", "versions")
"""What a model card has at least."""


@dataclass(frozen=True, kw_only=True)
class ExportedModel:
    """An exported model as read from its folder."""

    weights: tuple[Path, ...]
    """The files of weights: the safetensors, or symbol and parameters."""
    formats: Mapping[str, Path]
    """The file of each format that was written."""
    card: Mapping[str, Any]
    """The model card."""

    @property
    def label_names(self) -> tuple[str, ...]:
        """Name of each class, by column of the logits; none for regression."""
        (output,) = self.card["outputs"].values()
        return tuple(output["columns"])


def seal_exported_model(folder: Path, card: Mapping[str, Any]) -> None:
    """Writes card and manifest over a folder that holds everything else.

    Args:
        folder: the artifact's folder.
        card: the model card, as JSON.
    """
    (folder / CARD).write_text(json.dumps(card, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    write_manifest(folder, kind=KIND, version=VERSION, body={"formats": _formats(card)})


def read_exported_model(path: Path, *, verify: bool = True) -> ExportedModel:
    """Reads the artifact.

    Args:
        path: its folder.
        verify: compare checksums.

    Raises:
        ArtifactError: the folder is not a whole artifact of this kind and version.
    """
    body = read_manifest(path, kind=KIND, version=VERSION, verify=verify)
    file = path / CARD
    try:
        card = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, json.JSONDecodeError) as error:
        raise ArtifactError(f"{file}: not a model card ({error})") from error
    missing = [key for key in CARD_KEYS if key not in card] if isinstance(card, dict) else list(CARD_KEYS)
    if missing:
        raise ArtifactError(f"{file}: a model card has {missing[0]!r}")
    weights = [FILES[name] for name in WEIGHT_FILES if name in card["files"]]
    listed = {*weights, *body["formats"].values()}
    if not listed <= body["files"].keys():
        raise ArtifactError(f"{path}: {sorted(listed - body['files'].keys())[0]} is not in its manifest")
    return ExportedModel(
        weights=tuple(path / name for name in weights),
        formats={name: path / file for name, file in body["formats"].items()},
        card=card,
    )


def _formats(card: Mapping[str, Any]) -> dict[str, str]:
    return {name: entry["file"] for name, entry in card["files"].items() if name not in WEIGHT_FILES}
