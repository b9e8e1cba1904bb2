"""The README that lies beside an exported model over rows: how to run it. Knows nothing of its writing."""

from collections.abc import Mapping
from typing import Any

from .instructions import SERVING, WEIGHTS

_HEAD = """# An exported model over rows

Task: {task}. Model: {model}, of {framework}. `model_card.json` says what it takes and gives, its labels, its
metrics and how the files were checked.

- `x`: {dtype} {shape}, {meaning}.
- `{output}`: float32 [num_rows, {num_outputs}], {gives}.
"""

_ONNX = """
## ONNX, without {framework}

```python
import json

import numpy as np
import onnxruntime

with open("model_card.json", encoding="utf-8") as file:
    labels = json.load(file)["outputs"]["{output}"]["columns"]
session = onnxruntime.InferenceSession("model.onnx", providers=["CPUExecutionProvider"])

x = np.zeros((2, {row}), dtype=np.{dtype})  # your rows here

({output},) = session.run(["{output}"], {{"x": x}})
for row in {output}:
    print(labels[row.argmax()] if labels else float(row[0]))
```
"""

_TORCHSCRIPT = """
## TorchScript

```python
import torch

model = torch.jit.load("model.pt")
x = torch.zeros(2, {row}, dtype=torch.{dtype})
with torch.no_grad():
    print(model(x))
```
"""

_SYMBOL = """
## MXNet's symbol and parameters

They are as training wrote them: their input is `data`, float32{scaling}.

```python
import mxnet as mx

block = mx.gluon.SymbolBlock.imports("model-symbol.json", ["data"], "model-0000.params")
x = mx.nd.zeros((2, {row}))
print(block(x))
```
"""


def row_instructions(card: Mapping[str, Any]) -> str:
    """Returns the text, with a program for each file that is there.

    Args:
        card: the model card.
    """
    x, ((output, gives),) = card["inputs"]["x"], card["outputs"].items()
    values = {
        "task": card["task"],
        "model": card["entry_point"] or card["architecture"],
        "framework": card["framework"],
        "dtype": x["type"],
        "shape": f"[{', '.join(map(str, x['shape']))}]",
        "meaning": x["meaning"],
        "output": output,
        "num_outputs": gives["shape"][1],
        "gives": gives["meaning"],
        "row": ", ".join(map(str, x["shape"][1:])),
        "scaling": ", bytes divided by 255" if x["type"] == "uint8" else "",
    }
    files = card["files"]
    pieces = [_HEAD]
    pieces += [_ONNX] if "onnx" in files else []
    pieces += [_TORCHSCRIPT] if "torchscript" in files else []
    pieces += [_SYMBOL] if "symbol" in files else []
    text = "".join(piece.format(**values) for piece in pieces)
    text += (
        SERVING.format(inputs="`x__0`", output=f"`{output}__0`") if {"onnx", "torchscript"} & {*files} else ""
    )
    text += WEIGHTS if "safetensors" in files else ""
    for name, reason in card["not_exported"].items():
        text += f"\nThere is no {name} file: {reason}.\n"
    return text
