"""Loads again what was written and compares its outputs with those of the trained model.

Knows nothing of how the files were written.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from .._launch import Job, Replica, Role, run_job

_TARGETS = {
    "torchscript": "geokfp.components.export.reload:run_torchscript",
    "onnx": "geokfp.components.export.reload:run_onnx",
    "symbol": "geokfp.components.export.reload:run_symbol",
}


class OutputsDiffer(RuntimeError):
    """What was written does not give the outputs of the trained model."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Agreement:
    """How an exported file compares with the trained model."""

    differences: npt.NDArray[np.float64]
    """Absolute difference of every output compared."""
    same_labels: float | None
    """Share of the nodes or rows whose most likely class is the same; None for regression."""

    @property
    def largest(self) -> float:
        """The largest difference."""
        return float(self.differences.max(initial=0.0))


@dataclass(frozen=True, kw_only=True, eq=False)
class Run:
    """A file to run in a process of its own."""

    kind: str
    """`torchscript`, `onnx` or `symbol`: how it is loaded."""
    file: Path
    """The file."""
    batches: Sequence[Mapping[str, npt.NDArray[Any]]]
    """Its inputs by name, in the order of its arguments."""


def run_alone(
    runs: Mapping[str, Run], *, work: Path, timeout_s: float
) -> dict[str, list[npt.NDArray[np.float32]]]:
    """Runs files, each in a process of its own that cannot import what trained the model.

    Args:
        runs: by name.
        work: a folder for what the processes are given and give.
        timeout_s: how long they may take.

    Returns:
        By name, the outputs of every batch.

    Raises:
        ProcessFailed: a file could not be loaded or run, or took too long.
    """
    if not runs:
        return {}
    roles = []
    for name, run in runs.items():
        given = work / f"{name}-given.npz"
        np.savez(
            given,
            **{f"{i}-{key}": array for i, each in enumerate(run.batches) for key, array in each.items()},
        )
        arguments = (str(run.file), str(given), str(work / f"{name}.npz"))
        roles.append(
            Role(name=name, target=_TARGETS[run.kind], replicas=(Replica(name=name, arguments=arguments),))
        )
    run_job(Job(name="export_model", roles=tuple(roles), deadline_s=timeout_s), log_folder=work / "logs")
    return {name: _read(work / f"{name}.npz", len(run.batches)) for name, run in runs.items()}


def _read(path: Path, num_batches: int) -> list[npt.NDArray[np.float32]]:
    with np.load(path, allow_pickle=False) as given:
        return [given[str(index)] for index in range(num_batches)]


def compare(
    file: str,
    found: Sequence[npt.NDArray[np.float32]],
    wanted: Sequence[npt.NDArray[np.float32]],
    *,
    tolerance: float,
    units: str,
    labelled: bool = True,
) -> Agreement:
    """Compares outputs [n, k] of each batch with those of the trained model.

    Args:
        file: what gave the outputs, for the message.
        found: its outputs.
        wanted: those of the trained model.
        tolerance: largest difference that passes.
        units: what the outputs are of, such as `real nodes`, for the message.
        labelled: whether the largest output of n is a class.

    Raises:
        OutputsDiffer: an output differs by more or is no number, or the shapes differ.
    """
    for one, other in zip(found, wanted, strict=True):
        if one.shape != other.shape:
            raise OutputsDiffer(
                f"{file}: gives outputs of shape {one.shape}, the trained model {other.shape}"
            )
    one, other = np.concatenate(found), np.concatenate(wanted)
    difference = np.abs(one.astype(np.float64) - other.astype(np.float64))
    difference[one == other] = 0.0  # infinities of one sign
    if np.isnan(difference).any():
        raise OutputsDiffer(f"{file}: some outputs are no numbers")
    same = float((one.argmax(1) == other.argmax(1)).mean()) if labelled else None
    agreement = Agreement(differences=difference.ravel(), same_labels=same)
    if agreement.largest > tolerance:
        raise OutputsDiffer(
            f"{file}: outputs differ by up to {agreement.largest:.3g} from the trained model on "
            f"{len(one)} {units}; the tolerance is {tolerance:g}"
        )
    return agreement
