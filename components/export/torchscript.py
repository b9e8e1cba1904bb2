"""TorchScript: one file that torch, or libtorch without Python, runs.

Knows nothing of DGL.
"""

import warnings
from pathlib import Path

import torch
from torch import Tensor, nn


def write_torchscript(module: nn.Module, example: tuple[Tensor, ...], path: Path, *, scripts: bool) -> None:
    """Writes a module over plain tensors as TorchScript.

    Args:
        module: in evaluation mode.
        example: arguments to trace on.
        path: the file to write.
        scripts: compile the module's source; else it is traced, as a user's source may be what TorchScript
            does not read.
    """
    with warnings.catch_warnings():
        # torch announces successors that need a newer numpy than the pinned set allows.
        warnings.simplefilter("ignore")
        script = (
            torch.jit.script(module) if scripts else torch.jit.trace(module, example, check_trace=False)  # type: ignore[no-untyped-call]
        )
        torch.jit.save(script, str(path))
