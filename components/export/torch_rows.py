"""Writes a torch model over rows, and runs it. Knows nothing of MXNet."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from ..ingest.graph import Array
from ..table_training.rows import entering
from ..table_training.trained_model import TrainedModel
from ..training.trained_gnn import load_weights
from . import onnx, torchscript
from .row_card import num_outputs, output_name
from .row_form import OverRows


def write_torch_rows(
    name: str, trained: TrainedModel, example: Array, path: Path, *, metadata: Mapping[str, Any]
) -> str:
    """Writes input `x` [num_rows, ...], as the rows lie, and one output [num_rows, num_outputs].

    Args:
        name: `torchscript` or `onnx`.
        trained: the trained model.
        example: rows to trace on, uint8 or float32 [n, ...].
        path: the file to write.
        metadata: properties of an ONNX file.

    Returns:
        Why there is no such file, of a user's own model: what torch cannot export; empty when it was written.
    """
    module = OverRows(
        trained.build(), of_bytes=trained.feature_dtype == "uint8", num_outputs=num_outputs(trained)
    ).eval()
    rows = (torch.from_numpy(example),)
    output = output_name(trained)
    try:
        if name == "torchscript":
            torchscript.write_torchscript(module, rows, path, scripts=False)
        else:
            free = {"x": {0: "num_rows"}, output: {0: "num_rows"}}
            signature = onnx.Signature(inputs=("x",), output=output, free=free)
            onnx.write_onnx(module, rows, path, signature=signature, metadata=metadata)
    # What torch raises of code that it cannot trace, and of operators that have no form in ONNX.
    except (RuntimeError, TypeError, ValueError) as error:
        if not trained.source.entry_point:
            raise
        path.unlink(missing_ok=True)
        return f"torch cannot export it ({type(error).__name__}: {' '.join(str(error).split())[:300]})"
    return ""


def outputs_of(
    trained: TrainedModel, weights: Path, batches: Sequence[Array]
) -> list[npt.NDArray[np.float32]]:
    """Returns what the trained model gives, float32 [n, num_outputs] a batch.

    Args:
        trained: how to build it.
        weights: a safetensors file.
        batches: rows as they lie.
    """
    model: nn.Module = trained.source.build().model
    load_weights(model, weights)
    model.eval()
    with torch.no_grad():
        found = [model(torch.from_numpy(entering(batch))) for batch in batches]
    return [outputs.numpy().reshape(-1, num_outputs(trained)) for outputs in found]
