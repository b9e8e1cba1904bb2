"""Ready files for model servers: a Triton model repository, and a KServe service that serves it.

Drawing of the folder, for a model named `gnn`::

    serving/
      kserve.yaml            InferenceService over the repository; its storageUri is yours to fill in
      triton/                a model repository
        gnn-onnx/
          config.pbtxt
          1/model.onnx
        gnn-torchscript/
          config.pbtxt
          1/model.pt

Knows nothing of how the model files were written.
"""

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from .exported_model import FILES

FOLDER = "serving"
_BACKENDS = {"onnx": "onnxruntime", "torchscript": "pytorch"}
_TYPES = {"float32": "TYPE_FP32", "int64": "TYPE_INT64", "uint8": "TYPE_UINT8"}

_CONFIG = """name: "{name}"
backend: "{backend}"
max_batch_size: 0
input [
{inputs}
]
output [
{outputs}
]
"""
_TENSOR = '  {{ name: "{name}", data_type: {type}, dims: [ {dims} ] }}'

_KSERVE = """# Copy the folder triton/ to a store, put its URI below, then: kubectl apply -f kserve.yaml
# Requests follow the Open Inference Protocol (v2), to the models {models}.
apiVersion: serving.kserve.io/v1beta1
kind: InferenceService
metadata:
  name: {name}
spec:
  predictor:
    model:
      runtime: kserve-tritonserver
      modelFormat:
        name: triton
      protocolVersion: v2
      storageUri: s3://bucket/path/triton
"""


def write_serving(folder: Path, formats: Sequence[str], *, name: str, card: Mapping[str, Any]) -> None:
    """Writes the folder `serving`, when there is a format to serve.

    Args:
        folder: the exported model's folder, where the files of the formats lie.
        formats: among `onnx` and `torchscript`.
        name: the service's name, and the start of the models' names.
        card: the model card, whose inputs and outputs are those of the files.
    """
    if not formats:
        return
    repository = folder / FOLDER / "triton"
    for kind in formats:
        version = repository / f"{name}-{kind}" / "1"
        version.mkdir(parents=True)
        shutil.copyfile(folder / FILES[kind], version / FILES[kind])
        text = _CONFIG.format(
            name=f"{name}-{kind}",
            backend=_BACKENDS[kind],
            inputs=_tensors(kind, card["inputs"]),
            outputs=_tensors(kind, card["outputs"]),
        )
        (version.parent / "config.pbtxt").write_text(text, encoding="utf-8")
    models = ", ".join(f"{name}-{kind}" for kind in formats)
    (folder / FOLDER / "kserve.yaml").write_text(_KSERVE.format(name=name, models=models), encoding="utf-8")


def _tensors(kind: str, tensors: Mapping[str, Mapping[str, Any]]) -> str:
    lines = []
    for index, (name, tensor) in enumerate(tensors.items()):
        # libtorch knows arguments and results by position, which Triton reads from their names.
        called = f"{name}__{index}" if kind == "torchscript" else name
        dims = ", ".join("-1" if isinstance(size, str) else str(size) for size in tensor["shape"])
        lines.append(_TENSOR.format(name=called, type=_TYPES[tensor["type"]], dims=dims))
    return ",\n".join(lines)
