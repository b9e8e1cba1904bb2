"""A worker's state between two epochs, and the file that it is kept in. Knows nothing of when it is kept.

The file is safetensors: `model.*` parameters and buffers, `best.*` those of the best epoch, `optimizer.<n>.*`
the optimizer's tensors of parameter n; its metadata holds the rows of the epochs as JSON.
"""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from .._files import ArtifactError, new_file
from .epochs import EpochRow

_HISTORY = "history"


@dataclass
class TrainingState:
    """What the next epoch depends on; random draws are a function of its number (`seeds`)."""

    model: nn.Module
    """The model, with the weights of the last epoch."""
    optimizer: torch.optim.Optimizer
    """The optimizer of its parameters."""
    history: list[EpochRow] = field(default_factory=list)
    """One row an epoch."""
    best_weights: dict[str, Tensor] = field(default_factory=dict)
    """Parameters and buffers of the best epoch; empty before the first validation."""

    def write(self, path: Path) -> None:
        """Writes the state, whole or not at all."""
        tensors = {
            **_named("model", self.model.state_dict()),
            **_named("best", self.best_weights),
            **{
                key: value
                for index, values in self.optimizer.state_dict()["state"].items()
                for key, value in _named(f"optimizer.{index}", values).items()
            },
        }
        rows = json.dumps([row.finite() for row in self.history])
        with new_file(path) as temporary:
            save_file(tensors, temporary, {_HISTORY: rows})

    def read(self, path: Path) -> None:
        """Takes over what `write` wrote for the same model and optimizer.

        Raises:
            ArtifactError: the file is not whole, or is of another model.
        """
        try:
            with safe_open(path, framework="pt") as file:
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  it is no dict
                rows = json.loads((file.metadata() or {})[_HISTORY])
            self.model.load_state_dict(_section("model", tensors))
            self.optimizer.load_state_dict(
                {
                    "state": _optimizer_state(_section("optimizer", tensors)),
                    "param_groups": self.optimizer.state_dict()["param_groups"],
                }
            )
        except (OSError, SafetensorError, KeyError, ValueError, RuntimeError) as error:
            cause = " ".join(str(error).split())
            raise ArtifactError(f"{path}: not the state of this training: {cause}") from error
        self.best_weights = _section("best", tensors)
        self.history = [EpochRow(**{**row, "epoch": int(row["epoch"])}) for row in rows]


def _named(section: str, tensors: dict[str, Any]) -> dict[str, Tensor]:
    return {f"{section}.{name}": tensor.detach().clone() for name, tensor in tensors.items()}


def _section(section: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    start = f"{section}."
    return {name.removeprefix(start): value for name, value in tensors.items() if name.startswith(start)}


def _optimizer_state(tensors: dict[str, Tensor]) -> dict[int, dict[str, Tensor]]:
    state: dict[int, dict[str, Tensor]] = {}
    for key, value in tensors.items():
        index, _, name = key.partition(".")
        state.setdefault(int(index), {})[name] = value
    return state
