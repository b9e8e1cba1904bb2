"""The README that lies beside an exported model: how to run it. Knows nothing of how it was written."""

from collections.abc import Mapping
from typing import Any

_HEAD = """# An exported graph neural network

Task: {task}. Architecture: {architecture}. `model_card.json` says what it takes and gives, its labels, its
metrics and how the files were checked.

- `x`: float32 [num_nodes, {num_features}], one row of features a node, columns as in the card.
- `edge_index`: int64 [2, num_edges], sources and destinations as rows of `x`; an undirected edge in both
  directions.
- `logits`: float32 [num_nodes, {num_classes}], columns as in the card.

Give the whole graph, or the nodes that you ask for with all in-neighbours of {hops} hops: their logits are
then those in the whole graph.
"""

_ONNX = """
## ONNX, without torch and without DGL

```python
import json

import numpy as np
import onnxruntime

with open("model_card.json", encoding="utf-8") as file:
    labels = json.load(file)["outputs"]["logits"]["columns"]
session = onnxruntime.InferenceSession("model.onnx", providers=["CPUExecutionProvider"])

# Your graph here: two nodes and the edge between them, in both directions.
x = np.zeros((2, {num_features}), dtype=np.float32)
edge_index = np.array([[0, 1], [1, 0]], dtype=np.int64)

(logits,) = session.run(["logits"], {{"x": x, "edge_index": edge_index}})
probability = np.exp(logits - logits.max(axis=1, keepdims=True))
probability /= probability.sum(axis=1, keepdims=True)
for node, best in enumerate(probability.argmax(axis=1)):
    print(node, labels[best], round(float(probability[node, best]), 4))
```
"""

_TORCHSCRIPT = """
## TorchScript, without DGL

```python
import torch

model = torch.jit.load("model.pt")
x = torch.zeros(2, {num_features})
edge_index = torch.tensor([[0, 1], [1, 0]])
with torch.no_grad():
    print(model(x, edge_index).softmax(dim=1))
```
"""

SERVING = """
## On a model server

`serving/triton` is a model repository of Triton: `tritonserver --model-repository=serving/triton`.
`serving/kserve.yaml` is a KServe service over it; put in it where you copied the repository to. Inputs and
outputs are those above; Triton calls those of TorchScript {inputs} and {output}.
"""
"""Needs `inputs` and `output`, the names of those of TorchScript."""

WEIGHTS = """
## Weights alone

```python
from safetensors.numpy import load_file

for name, array in load_file("weights.safetensors").items():
    print(name, array.dtype, array.shape)
```
"""


def instructions(card: Mapping[str, Any]) -> str:
    """Returns the text, with a program for each file that is there.

    Args:
        card: the model card.
    """
    values = {
        "task": card["task"],
        "architecture": card["entry_point"] or card["architecture"],
        "num_features": card["inputs"]["x"]["shape"][1],
        "num_classes": card["outputs"]["logits"]["shape"][1],
        "hops": card["neighbourhood_hops"],
        "inputs": "`x__0`, `edge_index__1`",
        "output": "`logits__0`",
    }
    pieces = [_HEAD]
    pieces += [_ONNX] if "onnx" in card["files"] else []
    pieces += [_TORCHSCRIPT] if "torchscript" in card["files"] else []
    pieces += [SERVING] if len(card["files"]) > 1 else []
    pieces.append(WEIGHTS)
    text = "".join(piece.format(**values) for piece in pieces)
    for name, reason in card["not_exported"].items():
        text += f"\nThere is no {name} file: {reason}.\n"
    return text
