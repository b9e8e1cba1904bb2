"""What an object keeps from round to round, as plain arrays and JSON: its form in a checkpoint.

    state.safetensors    the arrays by name; its metadata holds the facts as JSON

Names of parts that hold parts are paths: `policy/anchor`. Knows nothing of who keeps what, nor of when.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from ..._files import ArtifactError, new_file
from ..wire.messages import Array

STATE = "state.safetensors"
_FACTS = "facts"


@dataclass(frozen=True, slots=True)
class State:
    """A copy of what an object keeps, which later rounds do not change."""

    arrays: Mapping[str, Array] = field(default_factory=dict)
    """Arrays by name."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """All else, as JSON, by name."""

    @classmethod
    def of(cls, parts: Mapping[str, "State"]) -> "State":
        """Returns the state that has these parts; a part's name has no slash."""
        return cls(
            {f"{name}/{key}": array for name, part in parts.items() for key, array in part.arrays.items()},
            {name: dict(part.facts) for name, part in parts.items() if part.facts},
        )

    def part(self, name: str) -> "State":
        """Returns a part; an empty state where there is none."""
        start = f"{name}/"
        arrays = {
            key.removeprefix(start): array for key, array in self.arrays.items() if key.startswith(start)
        }
        return State(arrays, self.facts.get(name, {}))

    def write(self, path: Path) -> None:
        """Writes the state, whole or not at all."""
        arrays = {name: np.ascontiguousarray(array) for name, array in self.arrays.items()}
        with new_file(path) as temporary:
            save_file(arrays, temporary, {_FACTS: json.dumps(dict(self.facts))})

    @classmethod
    def read(cls, path: Path) -> "State":
        """Reads what `write` wrote.

        Raises:
            ArtifactError: the file is not whole, or none of these.
        """
        try:
            with safe_open(path, framework="np") as file:
                arrays = {name: np.array(file.get_tensor(name)) for name in file.keys()}  # noqa: SIM118  it is no dict
                return cls(arrays, json.loads((file.metadata() or {})[_FACTS]))
        except (OSError, SafetensorError, KeyError, ValueError) as error:
            cause = " ".join(str(error).split())
            raise ArtifactError(f"{path}: not the state of a training ({cause})") from error


@runtime_checkable
class Stateful(Protocol):
    """What keeps something from round to round; both are called where nothing else runs on the object."""

    def state(self) -> State:
        """Returns a copy of what is kept."""

    def load_state(self, state: State) -> None:
        """Replaces what is kept by what `state` of an object made in the same way gave.

        Raises:
            ValueError: it is of an object made otherwise.
        """


def state_of(kept: object) -> State:
    """Returns an object's state; an empty one of an object that keeps nothing."""
    return kept.state() if isinstance(kept, Stateful) else State()


def load_into(kept: object, state: State) -> None:
    """Gives an object its state.

    Raises:
        ArtifactError: the object keeps nothing, and the state is not empty.
    """
    if isinstance(kept, Stateful):
        kept.load_state(state)
    elif state.arrays or state.facts:
        raise ArtifactError(
            f"checkpoint holds {sorted((*state.arrays, *state.facts))} of {type(kept).__name__}, "
            "which keeps nothing"
        )
