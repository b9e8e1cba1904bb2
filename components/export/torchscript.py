"""TorchScript: one file that torch, or libtorch without Python, runs.

Knows nothing of DGL.
"""

import warnings
from pathlib import Path

import torch

from .plain_form import PlainForm
from .real_nodes import Case

FILE = "model.pt"


def write_torchscript(form: PlainForm, example: Case, path: Path) -> None:
    """Writes `forward(x, edge_index) -> logits` as TorchScript.

    The built-in architectures are compiled from their source; a user's model is traced, since its source
    may be what TorchScript does not read.

    Args:
        form: the model over plain tensors.
        example: a graph to trace on.
        path: the file to write.
    """
    if form.module is None:
        raise TypeError("a form with a module is needed")
    with warnings.catch_warnings():
        # torch announces successors that need a newer numpy than the pinned set allows.
        warnings.simplefilter("ignore")
        if form.scripts:
            script = torch.jit.script(form.module)
        else:
            arguments = (example.x, example.edge_index)
            script = torch.jit.trace(form.module, arguments, check_trace=False)  # type: ignore[no-untyped-call]
        torch.jit.save(script, str(path))
