"""What an optimizer of MXNet keeps, as plain arrays and JSON. For MXNet 1.9.1."""

from collections.abc import Iterator, Mapping
from typing import Any

import mxnet as mx

from ..._files import ArtifactError
from ..checkpoints.state import State


def updater_state(updater: Any) -> State:
    """Returns the state of each array, counts of steps, and the optimizer's own numbers.

    Args:
        updater: MXNet's, of `mx.optimizer.get_updater`.
    """
    arrays = {
        f"{key}/{slot}": array.asnumpy()
        for key, kept in updater.states.items()
        for slot, array in _listed(kept)
    }
    optimizer = updater.optimizer
    counts = {str(key): count for key, count in optimizer._index_update_count.items()}
    facts = {"counts": counts, "numbers": _numbers(optimizer), "keys": list(updater.states)}
    if optimizer.lr_scheduler is not None:
        facts["scheduler"] = _numbers(optimizer.lr_scheduler)
    return State(arrays, facts)


def load_updater_state(updater: Any, weights: Mapping[Any, Any], state: State) -> None:
    """Takes over what `updater_state` gave of an optimizer of the same kind.

    Args:
        updater: MXNet's.
        weights: the arrays that it steps, by key.
        state: what was kept.

    Raises:
        ArtifactError: it is of another optimizer or other arrays.
    """
    optimizer = updater.optimizer
    try:
        for key in state.facts["keys"]:
            kept = optimizer.create_state_multi_precision(key, weights[key])
            for slot, array in _listed(kept):
                mx.nd.array(state.arrays[f"{key}/{slot}"], dtype=array.dtype).copyto(array)
            updater.states[key], updater.states_synced[key] = kept, True
        named = {str(key): key for key in weights}
        for name, count in state.facts["counts"].items():
            optimizer._index_update_count[named[name]] = count
    except (KeyError, ValueError, mx.base.MXNetError) as error:
        cause = " ".join(str(error).split())
        raise ArtifactError(f"checkpoint is not of this optimizer: {cause}") from error
    vars(optimizer).update(state.facts["numbers"])
    if optimizer.lr_scheduler is not None:
        vars(optimizer.lr_scheduler).update(state.facts.get("scheduler", {}))


def _listed(kept: Any, path: str = "state") -> Iterator[tuple[str, Any]]:
    """Yields the arrays of one state, which may be none, one, or tuples of these."""
    if isinstance(kept, tuple | list):
        for index, each in enumerate(kept):
            yield from _listed(each, f"{path}.{index}")
    elif kept is not None:
        yield path, kept


def _numbers(thing: Any) -> dict[str, Any]:
    """Returns an object's own numbers, such as the steps that it has counted."""
    return {
        name: value
        for name, value in vars(thing).items()
        if isinstance(value, bool | int | float) and not name.startswith("__")
    }
