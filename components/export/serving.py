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
from collections.abc import Sequence
from pathlib import Path

from . import onnx, torchscript

FOLDER = "serving"
_FILES = {"onnx": onnx.FILE, "torchscript": torchscript.FILE}
_BACKENDS = {"onnx": "onnxruntime", "torchscript": "pytorch"}
# libtorch knows arguments and results by position, which Triton reads from their names.
_NAMES = {
    "onnx": ("x", "edge_index", "logits"),
    "torchscript": ("x__0", "edge_index__1", "logits__0"),
}

_CONFIG = """name: "{name}"
backend: "{backend}"
max_batch_size: 0
input [
  {{ name: "{x}", data_type: TYPE_FP32, dims: [ -1, {num_features} ] }},
  {{ name: "{edge_index}", data_type: TYPE_INT64, dims: [ 2, -1 ] }}
]
output [
  {{ name: "{logits}", data_type: TYPE_FP32, dims: [ -1, {num_classes} ] }}
]
"""

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


def write_serving(
    folder: Path, formats: Sequence[str], *, name: str, num_features: int, num_classes: int
) -> None:
    """Writes the folder `serving`, when there is a format to serve.

    Args:
        folder: the exported model's folder, where the files of the formats lie.
        formats: among `onnx` and `torchscript`.
        name: the service's name, and the start of the models' names.
        num_features: width of `x`.
        num_classes: width of `logits`.
    """
    if not formats:
        return
    repository = folder / FOLDER / "triton"
    for kind in formats:
        x, edge_index, logits = _NAMES[kind]
        version = repository / f"{name}-{kind}" / "1"
        version.mkdir(parents=True)
        shutil.copyfile(folder / _FILES[kind], version / _FILES[kind])
        text = _CONFIG.format(
            name=f"{name}-{kind}",
            backend=_BACKENDS[kind],
            x=x,
            edge_index=edge_index,
            logits=logits,
            num_features=num_features,
            num_classes=num_classes,
        )
        (version.parent / "config.pbtxt").write_text(text, encoding="utf-8")
    models = ", ".join(f"{name}-{kind}" for kind in formats)
    (folder / FOLDER / "kserve.yaml").write_text(_KSERVE.format(name=name, models=models), encoding="utf-8")
