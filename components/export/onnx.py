"""ONNX of a module of torch: one file that many runtimes and servers run, here checked with onnxruntime.

Knows nothing of DGL.
"""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnx
import torch
from torch import Tensor, nn

from .onnx_file import seal_onnx

OPSET = 18
"""The first with a scatter that takes the largest value, which attention needs."""


@dataclass(frozen=True, kw_only=True)
class Signature:
    """Names of what a module takes and gives."""

    inputs: tuple[str, ...]
    """Its arguments, in order."""
    output: str
    """What it returns."""
    free: Mapping[str, Mapping[int, str]]
    """Name of each dimension that is free, by input or output and its place in the shape."""


def write_onnx(
    module: nn.Module,
    example: tuple[Tensor, ...],
    path: Path,
    *,
    signature: Signature,
    metadata: Mapping[str, Any],
) -> None:
    """Writes a module over plain tensors.

    Args:
        module: in evaluation mode.
        example: arguments to trace on.
        path: the file to write.
        signature: names, and the dimensions that stay free.
        metadata: properties stored in the file, as JSON.

    Raises:
        torch.onnx.errors.OnnxExporterError: an operator that ONNX, or its exporter, does not have.
    """
    with warnings.catch_warnings():
        # The exporter that torch announces in its place needs a newer numpy than the pinned set allows.
        warnings.simplefilter("ignore")
        torch.onnx.export(
            module,
            example,
            str(path),
            dynamo=False,
            opset_version=OPSET,
            input_names=list(signature.inputs),
            output_names=[signature.output],
            dynamic_axes={name: dict(places) for name, places in signature.free.items()},
        )
    seal_onnx(onnx.load(str(path)), path, metadata=metadata)
