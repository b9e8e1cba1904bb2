"""Runs exported files as a stranger would: in a fresh process, where what trained them cannot be imported.

Each function is the target of a process and is called with the model's file, a file of batches and the file
to write outputs to. Imports nothing of this package but its progress lines.
"""

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from .._launch import progress

Batch = Mapping[str, npt.NDArray[Any]]
Run = Callable[[Batch], npt.NDArray[Any]]


def run_torchscript(arguments: list[str]) -> None:
    """Runs a TorchScript file, without DGL and without MXNet."""
    _forbid("dgl", "mxnet")
    import warnings

    warnings.simplefilter("ignore")
    import torch

    torch.set_num_threads(1)
    script = torch.jit.load(arguments[0])  # type: ignore[no-untyped-call]

    def run(batch: Batch) -> Any:
        with torch.no_grad():
            return script(*map(torch.from_numpy, batch.values())).numpy()

    _run_all(run, arguments)


def run_onnx(arguments: list[str]) -> None:
    """Runs an ONNX file by onnxruntime, without DGL, torch and MXNet."""
    _forbid("dgl", "torch", "mxnet")
    import onnxruntime

    session = onnxruntime.InferenceSession(arguments[0], providers=["CPUExecutionProvider"])

    def run(batch: Batch) -> Any:
        return session.run(None, dict(batch))[0]

    _run_all(run, arguments)


def run_symbol(arguments: list[str]) -> None:
    """Runs a symbol of MXNet with the parameters beside it, without DGL, torch and the code of its block."""
    _forbid("dgl", "torch")
    import warnings

    warnings.simplefilter("ignore")  # MXNet names what NumPy has deprecated when it is imported
    import mxnet as mx

    parameters = arguments[0].replace("-symbol.json", "-0000.params")
    block = mx.gluon.SymbolBlock.imports(arguments[0], ["data"], parameters, ctx=mx.cpu())

    def run(batch: Batch) -> Any:
        return block(mx.nd.array(batch["data"])).asnumpy()

    _run_all(run, arguments)


def _forbid(*names: str) -> None:
    loaded = [name for name in names if sys.modules.get(name) is not None]
    if loaded:
        raise RuntimeError(f"{', '.join(loaded)} is loaded already, so this process proves nothing")
    for name in names:
        sys.modules[name] = None  # type: ignore[assignment]  # an import of it now fails


def _run_all(run: Run, arguments: list[str]) -> None:
    model, batches, outputs = map(Path, arguments)
    inputs: dict[str, dict[str, npt.NDArray[Any]]] = {}
    with np.load(batches, allow_pickle=False) as given:
        for key in given.files:
            index, _, name = key.partition("-")
            inputs.setdefault(index, {})[name] = given[key]
    np.savez(outputs, **{index: run(batch) for index, batch in inputs.items()})
    progress(f"ran {model.name} on {len(inputs)} batches")
