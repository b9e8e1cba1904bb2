"""ONNX: one file that many runtimes and servers run, here checked with onnxruntime.

Knows nothing of DGL.
"""

import json
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import onnx
import torch

from .plain_form import PlainForm
from .real_nodes import Case

FILE = "model.onnx"
OPSET = 18
"""The first with a scatter that takes the largest value, which attention needs."""


def write_onnx(form: PlainForm, example: Case, path: Path, *, metadata: Mapping[str, Any]) -> None:
    """Writes inputs `x`, `edge_index` and output `logits`, with free numbers of nodes and edges.

    Args:
        form: the model over plain tensors.
        example: a graph to trace on.
        path: the file to write.
        metadata: properties stored in the file, as JSON.
    """
    if form.module is None:
        raise TypeError("a form with a module is needed")
    with warnings.catch_warnings():
        # The exporter that torch announces in its place needs a newer numpy than the pinned set allows.
        warnings.simplefilter("ignore")
        torch.onnx.export(
            form.module,
            (example.x, example.edge_index),
            str(path),
            dynamo=False,
            opset_version=OPSET,
            input_names=["x", "edge_index"],
            output_names=["logits"],
            dynamic_axes={"x": {0: "num_nodes"}, "edge_index": {1: "num_edges"}, "logits": {0: "num_nodes"}},
        )
    model = onnx.load(str(path))
    onnx.helper.set_model_props(
        model,
        {key: value if isinstance(value, str) else json.dumps(value) for key, value in metadata.items()},
    )
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, str(path))
