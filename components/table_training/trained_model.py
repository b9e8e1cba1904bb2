"""The trained model artifact, of torch or MXNet. Knows nothing of how the weights were found.

Its folder::

    manifest.json          kind geokfp.trained_model, version 1: how to build it, rows, labels, metrics
    weights.safetensors    torch only: parameters and buffers
    model-symbol.json      mxnet only: the exported graph, whose input is named `data`
    model-0000.params      mxnet only: its parameters
    history.json           one row a site and judged epoch
    user_code/             only when the model is the user's own and its code was given

Keys of the manifest beside kind and version: `framework` (`torch` or `mxnet`), `entry_point` or `algorithm`
(the other is empty), `hyperparameters`, `feature_shape` (of one row), `feature_dtype` (`float32`, or `uint8`:
such values are divided by 255 before they enter the model), `task` (`classification`: the model gives a
logit a class; `regression`: it gives one number), `num_classes` (0 for regression), `label_names`,
`feature_names`, `metrics`, `fingerprint` (of the shards).
"""

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .._files import ArtifactError, new_directory, read_manifest, write_manifest
from .._files.user_code import copy_user_code
from .source import MXNET, TORCH, ModelSource

if TYPE_CHECKING:
    from torch import nn

KIND = "geokfp.trained_model"
VERSION = 1
WEIGHTS = "weights.safetensors"
SYMBOL = "model-symbol.json"
PARAMETERS = "model-0000.params"
WEIGHT_FILES: Mapping[str, tuple[str, ...]] = {TORCH: (WEIGHTS,), MXNET: (SYMBOL, PARAMETERS)}
"""What holds the weights, by framework."""
HISTORY = "history.json"
USER_CODE = "user_code"
CLASSIFICATION, REGRESSION = "classification", "regression"


@dataclass(frozen=True, kw_only=True)
class TrainedModel:
    """A trained model as read from its folder."""

    directory: Path
    """The artifact's folder."""
    framework: str
    """`torch` or `mxnet`."""
    source: ModelSource
    """How to build the model, for a row of which shape and how many classes."""
    feature_dtype: str
    """Type of the rows: `float32`, or `uint8`, whose values are divided by 255 first."""
    label_names: tuple[str, ...]
    """Name of each class; empty for regression."""
    feature_names: tuple[str, ...]
    """Name of each feature column; empty when they have none."""
    metrics: Mapping[str, float]
    """What was measured at the end of training."""
    history: Sequence[Mapping[str, Any]]
    """One row a site and judged epoch."""
    fingerprint: str
    """Fingerprint of the shards that it was trained on."""

    @property
    def task(self) -> str:
        """`classification` or `regression`."""
        return CLASSIFICATION if self.source.num_classes else REGRESSION

    @property
    def weights(self) -> tuple[Path, ...]:
        """The files that hold the weights: the safetensors, or symbol and parameters."""
        return tuple(self.directory / name for name in WEIGHT_FILES[self.framework])

    def build(self) -> "nn.Module":
        """Builds a model of torch with its trained weights, in evaluation mode.

        Raises:
            ArtifactError: it is of MXNet, or the weights do not fit the model.
            InputError: the user's code cannot be used.
        """
        if self.framework != TORCH:
            raise ArtifactError(
                f"{self.directory}: a model of {self.framework}, held whole by {SYMBOL} and {PARAMETERS}"
            )
        from ..training.trained_gnn import load_weights

        model: nn.Module = self.source.build().model
        load_weights(model, self.weights[0])
        return model.eval()


def write_trained_model(
    path: Path,
    *,
    source: ModelSource,
    weights: Path,
    schema: Mapping[str, Any],
    metrics: Mapping[str, float],
    history: Sequence[Mapping[str, Any]],
) -> None:
    """Writes the artifact, whole or not at all.

    Args:
        path: the folder to write.
        source: how to build the model; its `user_code` folder is copied.
        weights: folder with the framework's files of weights.
        schema: `framework`; `feature_dtype`, `label_names`, `feature_names` and `fingerprint` of the shards.
        metrics: what was measured.
        history: one row a site and judged epoch.
    """
    with new_directory(path) as folder:
        for name in WEIGHT_FILES[schema["framework"]]:
            shutil.copyfile(weights / name, folder / name)
        (folder / HISTORY).write_text(json.dumps([dict(row) for row in history], indent=1) + "\n", "utf-8")
        copy_user_code(source.user_code, folder / USER_CODE)
        body = {
            "entry_point": source.entry_point,
            "algorithm": source.algorithm,
            "hyperparameters": dict(source.hyperparameters),
            "feature_shape": list(source.feature_shape),
            "task": CLASSIFICATION if source.num_classes else REGRESSION,
            "num_classes": source.num_classes,
            **schema,
            "metrics": dict(metrics),
        }
        write_manifest(folder, kind=KIND, version=VERSION, body=body)


def read_trained_model(path: Path, *, verify: bool = True) -> TrainedModel:
    """Reads the artifact; weights are loaded by `TrainedModel.build`.

    Args:
        path: the artifact's folder.
        verify: compare checksums.

    Raises:
        ArtifactError: the folder is not a whole artifact of this kind and version.
    """
    path = Path(path)
    body = read_manifest(path, kind=KIND, version=VERSION, verify=verify)
    user_code = path / USER_CODE
    try:
        return TrainedModel(
            directory=path,
            framework=body["framework"],
            source=ModelSource(
                entry_point=body["entry_point"],
                algorithm=body["algorithm"],
                hyperparameters=body["hyperparameters"],
                feature_shape=tuple(body["feature_shape"]),
                num_classes=body["num_classes"],
                user_code=user_code if user_code.is_dir() else None,
            ),
            feature_dtype=body["feature_dtype"],
            label_names=tuple(body["label_names"]),
            feature_names=tuple(body["feature_names"]),
            metrics=body["metrics"],
            history=json.loads((path / HISTORY).read_text("utf-8")),
            fingerprint=body["fingerprint"],
        )
    except (KeyError, TypeError) as error:
        raise ArtifactError(f"{path}: the manifest lacks {error}") from error
