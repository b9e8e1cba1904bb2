"""The trained GNN artifact. Knows nothing of how the weights were found.

Its folder::

    manifest.json          kind geokfp.trained_gnn, version 1: how to build it, labels, features, metrics
    weights.safetensors    parameters and buffers, float32
    history.json           one row an epoch
    user_code/             only when the model is the user's own and its code was given
"""

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import nn

from .._files import ArtifactError, new_directory, read_manifest, write_manifest
from .._files.user_code import copy_user_code
from .models import build
from .user_code import build_user_model

KIND = "geokfp.trained_gnn"
VERSION = 1
WEIGHTS = "weights.safetensors"
HISTORY = "history.json"
USER_CODE = "user_code"


@dataclass(frozen=True, kw_only=True)
class ModelSource:
    """How a model is built, but for its weights."""

    architecture: str
    """`sage`, `gcn` or `gat`; not used when `entry_point` is given."""
    entry_point: str = ""
    """`module:function` of the user's own model, or empty."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Options of `models.build` or of the user's `build`."""
    num_features: int
    """Width of the node features."""
    num_classes: int
    """Number of classes."""
    num_layers: int
    """Hops that the model looks at: blocks that its forward takes."""
    user_code: Path | None = None
    """Folder with the user's code, or None."""

    def build(self) -> nn.Module:
        """Builds the model with fresh weights, drawn from torch's global generator.

        Raises:
            InputError: an architecture, option or entry point that does not exist.
        """
        if self.entry_point:
            return build_user_model(
                self.entry_point, self.user_code, self.num_features, self.num_classes, self.options
            )
        options = {"num_layers": self.num_layers, **self.options}
        return build(self.architecture, self.num_features, self.num_classes, **options)


@dataclass(frozen=True, kw_only=True)
class TrainedGnn:
    """A trained GNN as read from its folder."""

    source: ModelSource
    """How to build the model."""
    weights: Path
    """The file of weights."""
    label_names: tuple[str, ...]
    """Name of each class."""
    feature_names: tuple[str, ...]
    """Name of each feature; empty when they have none."""
    metrics: Mapping[str, float]
    """What was measured at the end of training."""
    history: Sequence[Mapping[str, float]]
    """One row an epoch."""
    fingerprint: str
    """Fingerprint of the graph that it was trained on."""

    def build(self) -> nn.Module:
        """Builds the model with its trained weights, in evaluation mode.

        Raises:
            ArtifactError: the weights do not fit the model.
        """
        model = self.source.build()
        load_weights(model, self.weights)
        return model.eval()


def save_weights(model: nn.Module, path: Path) -> None:
    """Writes parameters and buffers as safetensors."""
    save_file(
        {name: tensor.detach().contiguous().clone() for name, tensor in model.state_dict().items()}, path
    )


def load_weights(model: nn.Module, path: Path) -> None:
    """Loads what `save_weights` wrote.

    Raises:
        ArtifactError: names or shapes differ from the model's.
    """
    try:
        model.load_state_dict(load_file(path))
    except RuntimeError as error:
        cause = " ".join(str(error).split())
        raise ArtifactError(f"{path}: the weights do not fit the model: {cause}") from error


def write_trained_gnn(
    path: Path,
    *,
    source: ModelSource,
    weights: Mapping[str, torch.Tensor] | Path,
    schema: Mapping[str, Any],
    metrics: Mapping[str, float],
    history: Sequence[Mapping[str, float]],
) -> None:
    """Writes the artifact, whole or not at all.

    Args:
        path: the folder to write.
        source: how to build the model; its `user_code` folder is copied.
        weights: the state dict, or a file of it as `save_weights` writes it.
        schema: `label_names`, `feature_names` and `fingerprint` of the graph, and further facts as JSON.
        metrics: what was measured.
        history: one row an epoch.
    """
    with new_directory(path) as folder:
        if isinstance(weights, Path):
            shutil.copyfile(weights, folder / WEIGHTS)
        else:
            save_file(
                {name: t.detach().contiguous().clone() for name, t in weights.items()}, folder / WEIGHTS
            )
        (folder / HISTORY).write_text(json.dumps([dict(row) for row in history], indent=1) + "\n", "utf-8")
        copy_user_code(source.user_code, folder / USER_CODE)
        body = {
            "architecture": source.architecture,
            "entry_point": source.entry_point,
            "options": dict(source.options),
            "num_features": source.num_features,
            "num_classes": source.num_classes,
            "num_layers": source.num_layers,
            **schema,
            "metrics": dict(metrics),
        }
        write_manifest(folder, kind=KIND, version=VERSION, body=body)


def read_trained_gnn(path: Path, *, verify: bool = True) -> TrainedGnn:
    """Reads the artifact; weights are loaded by `TrainedGnn.build`.

    Args:
        path: the artifact's folder.
        verify: compare checksums.

    Raises:
        ArtifactError: the folder is not a whole artifact of this kind and version.
    """
    body = read_manifest(path, kind=KIND, version=VERSION, verify=verify)
    user_code = path / USER_CODE
    source = ModelSource(
        architecture=body["architecture"],
        entry_point=body["entry_point"],
        options=body["options"],
        num_features=body["num_features"],
        num_classes=body["num_classes"],
        num_layers=body["num_layers"],
        user_code=user_code if user_code.is_dir() else None,
    )
    return TrainedGnn(
        source=source,
        weights=path / WEIGHTS,
        label_names=tuple(body["label_names"]),
        feature_names=tuple(body["feature_names"]),
        metrics=body["metrics"],
        history=json.loads((path / HISTORY).read_text("utf-8")),
        fingerprint=body["fingerprint"],
    )
