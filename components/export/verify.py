"""Loads again what was written and compares its logits with those of the trained model.

Knows nothing of how the files were written.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from .._launch import Job, Replica, Role, run_job
from . import onnx, torchscript
from .exported_model import WEIGHTS
from .real_nodes import Case

FILES = {"safetensors": WEIGHTS, "torchscript": torchscript.FILE, "onnx": onnx.FILE}
_TARGETS = {
    "torchscript": "geokfp.components.export.reload:run_torchscript",
    "onnx": "geokfp.components.export.reload:run_onnx",
}


class LogitsDiffer(RuntimeError):
    """What was written does not give the logits of the trained model."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Agreement:
    """How an exported file compares with the trained model."""

    differences: npt.NDArray[np.float64]
    """Absolute difference of every logit compared."""
    same_labels: float
    """Share of the nodes whose most likely class is the same."""

    @property
    def largest(self) -> float:
        """The largest difference."""
        return float(self.differences.max(initial=0.0))


def run_without_dgl(
    folder: Path, formats: Sequence[str], cases: Sequence[Case], *, work: Path, timeout_s: float
) -> dict[str, list[npt.NDArray[np.float32]]]:
    """Runs the exported files, each in a process of its own that cannot import DGL.

    Args:
        folder: where the files lie.
        formats: which of them.
        cases: graphs to run them on.
        work: a folder for what the processes are given and give.
        timeout_s: how long they may take.

    Returns:
        By format, the logits of every case's seeds.

    Raises:
        ProcessFailed: a file could not be loaded or run, or took too long.
    """
    if not formats:
        return {}
    graphs = work / "graphs.npz"
    arrays = {f"x-{index}": case.x.numpy() for index, case in enumerate(cases)}
    arrays |= {f"edge_index-{index}": case.edge_index.numpy() for index, case in enumerate(cases)}
    np.savez(graphs, **arrays)
    results = {name: work / f"{name}.npz" for name in formats}
    roles = tuple(
        Role(
            name=name,
            target=_TARGETS[name],
            replicas=(
                Replica(name=name, arguments=(str(folder / FILES[name]), str(graphs), str(results[name]))),
            ),
        )
        for name in formats
    )
    run_job(Job(name="export_model", roles=roles, deadline_s=timeout_s), log_folder=work / "logs")
    return {name: _read(path, cases) for name, path in results.items()}


def _read(path: Path, cases: Sequence[Case]) -> list[npt.NDArray[np.float32]]:
    with np.load(path, allow_pickle=False) as given:
        return [given[f"logits-{index}"][case.seeds.numpy()] for index, case in enumerate(cases)]


def compare(
    file: str,
    found: Sequence[npt.NDArray[np.float32]],
    wanted: Sequence[npt.NDArray[np.float32]],
    *,
    tolerance: float,
) -> Agreement:
    """Compares logits [nodes, num_classes] of each case with those of the trained model.

    Args:
        file: what gave the logits, for the message.
        found: its logits.
        wanted: those of the trained model.
        tolerance: largest difference that passes.

    Raises:
        LogitsDiffer: a logit differs by more or is no number, or the shapes differ.
    """
    for one, other in zip(found, wanted, strict=True):
        if one.shape != other.shape:
            raise LogitsDiffer(f"{file}: gives logits of shape {one.shape}, the trained model {other.shape}")
    one, other = np.concatenate(found), np.concatenate(wanted)
    difference = np.abs(one.astype(np.float64) - other.astype(np.float64))
    difference[one == other] = 0.0  # infinities of one sign
    if np.isnan(difference).any():
        raise LogitsDiffer(f"{file}: some logits are no numbers")
    same = float((one.argmax(1) == other.argmax(1)).mean())
    agreement = Agreement(differences=difference.ravel(), same_labels=same)
    if agreement.largest > tolerance:
        raise LogitsDiffer(
            f"{file}: logits differ by up to {agreement.largest:.3g} from the trained model on "
            f"{len(one)} real nodes; the tolerance is {tolerance:g}"
        )
    return agreement
