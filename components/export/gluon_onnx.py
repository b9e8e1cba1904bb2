"""ONNX of a gluon block's symbol, by mx.onnx, in a process of its own. For MXNet 1.9.1 and onnx 1.17.

mx.onnx knows the operators of opset 13 at most, and stamps its file with the newest opset that the installed
onnx has: it is stamped again with what it is.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from .._launch import Job, Replica, Role, run_job
from .onnx_file import seal_onnx

OPSET = 13
"""The last whose operators mx.onnx knows."""
BYTES = "uint8"
_TARGET = "geokfp.components.export.gluon_onnx:main"


@dataclass(frozen=True, kw_only=True)
class Order:
    """What is to be written; all of it is JSON."""

    symbol: str
    """Path of the symbol, whose input is `data`."""
    parameters: str
    """Path of its parameters."""
    feature_shape: list[int]
    """Shape of a row."""
    feature_dtype: str
    """`float32`, or `uint8`, whose values are divided by 255."""
    output: str
    """Name of the output."""
    num_outputs: int
    """Numbers that the model gives a row."""
    metadata: Mapping[str, Any]
    """Properties of the file."""
    file: str
    """Path of the file to write."""


def write_gluon_onnx(order: Order, *, work: Path, timeout_s: float) -> str:
    """Writes input `x` [num_rows, ...], as the rows lie, and one output [num_rows, num_outputs].

    Args:
        order: what to write.
        work: a folder for what the process is given and gives.
        timeout_s: how long it may take.

    Returns:
        Why there is no such file: the operator that cannot be exported; empty when it was written.

    Raises:
        ProcessFailed: the process failed, or took too long.
    """
    (work / "order.json").write_text(json.dumps(asdict(order)), encoding="utf-8")
    replica = Replica(name="onnx-writer", arguments=(str(work),))
    role = Role(name="onnx-writer", target=_TARGET, replicas=(replica,))
    run_job(Job(name="export_model", roles=(role,), deadline_s=timeout_s), log_folder=work / "writer-logs")
    return (work / "refused.txt").read_text(encoding="utf-8")


def main(arguments: list[str]) -> None:
    """Writes the file.

    Args:
        arguments: the folder with the order.
    """
    work = Path(arguments[0])
    order = Order(**json.loads((work / "order.json").read_text(encoding="utf-8")))
    raw = work / "raw.onnx"
    refused = _convert(order, raw)
    if not refused:
        seal_onnx(_over_rows(raw, order), Path(order.file), metadata=order.metadata)
    (work / "refused.txt").write_text(refused, encoding="utf-8")


def _convert(order: Order, path: Path) -> str:
    import warnings

    warnings.simplefilter("ignore")  # MXNet names what NumPy has deprecated when it is imported
    import mxnet as mx
    import numpy as np
    import onnx

    onnx.checker.DEFAULT_CONTEXT.opset_imports = {"": OPSET}  # what mx.onnx is checked against
    try:
        mx.onnx.export_model(
            order.symbol,
            order.parameters,
            [(1, *order.feature_shape)],
            [np.float32],
            str(path),
            dynamic=True,
            dynamic_input_shapes=[("num_rows", *order.feature_shape)],
        )
    # What mx.onnx raises of an operator, or of an option of one, that it cannot write.
    except (AttributeError, NotImplementedError) as error:
        return f"mx.onnx cannot export it ({' '.join(str(error).split())})"
    return ""


def _over_rows(raw: Path, order: Order) -> Any:
    """Returns what mx.onnx wrote with rows as they lie for its input, and an output of a name and shape."""
    import numpy as np
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    graph = onnx.load(str(raw)).graph
    of_bytes = order.feature_dtype == BYTES
    entering = [helper.make_node("Cast", ["x"], ["entering" if of_bytes else "data"], to=TensorProto.FLOAT)]
    taken = {name for node in graph.node for name in node.input}
    weights = [each for each in graph.initializer if each.name in taken]
    if of_bytes:
        entering.append(helper.make_node("Div", ["entering", "brightest"], ["data"]))
        weights.append(numpy_helper.from_array(np.array(255, np.float32), "brightest"))
    leaving = helper.make_node("Flatten", [graph.output[0].name], [order.output], axis=1)
    element = TensorProto.UINT8 if of_bytes else TensorProto.FLOAT
    whole = helper.make_graph(
        [*entering, *graph.node, leaving],
        "rows",
        [helper.make_tensor_value_info("x", element, ["num_rows", *order.feature_shape])],
        [helper.make_tensor_value_info(order.output, TensorProto.FLOAT, ["num_rows", order.num_outputs])],
        initializer=weights,
    )
    return helper.make_model(whole, opset_imports=[helper.make_opsetid("", OPSET)], producer_name="mxnet")
