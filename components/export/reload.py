"""Runs exported files as a stranger would: in a fresh process, where DGL cannot be imported.

Each function is the target of a process and is called with the model's file, a file of graphs and the file
to write logits to. Imports nothing of this package but its progress lines.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from .._launch import progress

Run = Callable[[npt.NDArray[np.float32], npt.NDArray[np.int64]], Any]


def run_torchscript(arguments: list[str]) -> None:
    """Runs a TorchScript file, without DGL."""
    _forbid("dgl")
    import warnings

    warnings.simplefilter("ignore")
    import torch

    torch.set_num_threads(1)
    script = torch.jit.load(arguments[0])  # type: ignore[no-untyped-call]

    def run(x: npt.NDArray[np.float32], edge_index: npt.NDArray[np.int64]) -> Any:
        with torch.no_grad():
            return script(torch.from_numpy(x), torch.from_numpy(edge_index)).numpy()

    _run_all(run, arguments)


def run_onnx(arguments: list[str]) -> None:
    """Runs an ONNX file by onnxruntime, without DGL and without torch."""
    _forbid("dgl", "torch")
    import onnxruntime

    session = onnxruntime.InferenceSession(arguments[0], providers=["CPUExecutionProvider"])

    def run(x: npt.NDArray[np.float32], edge_index: npt.NDArray[np.int64]) -> Any:
        return session.run(["logits"], {"x": x, "edge_index": edge_index})[0]

    _run_all(run, arguments)


def _forbid(*names: str) -> None:
    loaded = [name for name in names if sys.modules.get(name) is not None]
    if loaded:
        raise RuntimeError(f"{', '.join(loaded)} is loaded already, so this process proves nothing")
    for name in names:
        sys.modules[name] = None  # type: ignore[assignment]  # an import of it now fails


def _run_all(run: Run, arguments: list[str]) -> None:
    model, graphs, logits = map(Path, arguments)
    results = {}
    with np.load(graphs, allow_pickle=False) as given:
        for index in range(len(given.files) // 2):
            results[f"logits-{index}"] = run(given[f"x-{index}"], given[f"edge_index-{index}"])
    np.savez(logits, **results)
    progress(f"ran {model.name} on {len(results)} graphs")
