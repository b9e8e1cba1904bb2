"""A torch model and its optimizer as plain arrays and JSON."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from ..._files import ArtifactError
from ..checkpoints.state import State
from ..wire.messages import Array

_PLAIN = (bool, int, float, str, type(None))


def torch_state(model: nn.Module, optimizer: torch.optim.Optimizer) -> State:
    """Returns parameters, buffers and the optimizer's state; bfloat16 as float32, which holds it exactly.

    Raises:
        ArtifactError: the optimizer keeps what is neither tensors, numbers nor text.
    """
    kept = optimizer.state_dict()
    groups = [
        {key: value for key, value in group.items() if key != "params"} for group in kept["param_groups"]
    ]
    parts = {str(index): _slots(values) for index, values in kept["state"].items()}
    plain = [{key: value for key, value in group.items() if _is_plain(value)} for group in groups]
    return State.of(
        {
            "model": State({name: _array(tensor) for name, tensor in model.state_dict().items()}),
            "optimizer": State.of(parts),
            "groups": State(facts={"groups": plain}),
        }
    )


def load_torch_state(model: nn.Module, optimizer: torch.optim.Optimizer, state: State) -> None:
    """Takes over what `torch_state` gave of the same model and optimizer.

    Raises:
        ArtifactError: it is of another model.
    """
    slots = state.part("optimizer")
    indices = sorted({int(name.partition("/")[0]) for name in (*slots.arrays, *slots.facts)})
    try:
        model.load_state_dict(_tensors(state.part("model").arrays))
        now = optimizer.state_dict()["param_groups"]
        groups = state.part("groups").facts["groups"]
        given = [
            {**group, **{key: _like(group.get(key), value) for key, value in kept.items()}}
            for group, kept in zip(now, groups, strict=True)
        ]
        values = {index: _loaded(slots.part(str(index))) for index in indices}
        optimizer.load_state_dict({"state": values, "param_groups": given})
        _hold_exactly(optimizer, values)
    except (KeyError, ValueError, RuntimeError) as error:
        cause = " ".join(str(error).split())
        raise ArtifactError(f"checkpoint is not of this model: {cause}") from error


def _slots(values: Mapping[str, Any]) -> State:
    arrays: dict[str, Array] = {}
    facts: dict[str, Any] = {}
    halves = [name for name, value in values.items() if _is_half(value)]
    for name, value in values.items():
        if isinstance(value, Tensor):
            arrays[name] = _array(value)
        elif _is_plain(value):
            facts[name] = value
        else:
            raise ArtifactError(
                f"optimizer keeps {name!r} of type {type(value).__name__}, which no checkpoint can hold; "
                "checkpoint_every 0 keeps none"
            )
    return State(arrays, {"plain": facts, "halves": halves} if facts or halves else {})


def _loaded(slots: State) -> dict[str, Any]:
    tensors = _tensors(slots.arrays)
    halves = {name: tensors[name].bfloat16() for name in slots.facts.get("halves", [])}
    return {**tensors, **halves, **slots.facts.get("plain", {})}


def _hold_exactly(optimizer: torch.optim.Optimizer, values: Mapping[int, Mapping[str, Any]]) -> None:
    """Undoes that torch gives what it loads the parameter's dtype."""
    parameters = [each for group in optimizer.param_groups for each in group["params"]]
    for index, slots in values.items():
        held = optimizer.state[parameters[index]]
        for name, value in slots.items():
            if isinstance(value, Tensor):
                held[name] = value.to(held[name].device)


def _array(tensor: Tensor) -> Array:
    kept = tensor.detach().cpu()
    kept = kept.float() if _is_half(kept) else kept.clone()
    array: Array = kept.numpy()
    return array


def _tensors(arrays: Mapping[str, Array]) -> dict[str, Tensor]:
    return {name: torch.from_numpy(array.copy()) for name, array in arrays.items()}


def _is_half(value: Any) -> bool:
    return isinstance(value, Tensor) and value.dtype == torch.bfloat16


def _is_plain(value: Any) -> bool:
    return isinstance(value, _PLAIN) or (isinstance(value, list | tuple) and all(map(_is_plain, value)))


def _like(now: Any, kept: Any) -> Any:
    """Undoes JSON, which knows no tuples."""
    return tuple(kept) if isinstance(now, tuple) else kept
