"""What a node makes of contributions: checks one that comes, merges those of a round."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..checkpoints.carried import Value
from ..errors import ProtocolError
from ..wire.messages import Array, Push
from ..wire.units import SITE, TREE, RoundId, Unit, whole_scope
from .reductions import REDUCTIONS, Reduction
from .rounds import Contribution, Finished
from .shelf import Shelved


@dataclass(frozen=True, kw_only=True, slots=True)
class Merged:
    """What is left of a round's contributions: theirs can be freed.

    Attributes:
        round: the round.
        reduction: name of the rule that merged.
        values: None where nobody brought any.
        weight: samples behind them.
        wait_s: longest wait that one of the contributions allows.
        covers: the workers in the round, sorted.
        priority: the most urgent one's.
    """

    round: RoundId
    reduction: str
    values: Array | None
    weight: float
    wait_s: float
    covers: tuple[str, ...]
    priority: int


def contribution(peer: str, push: Push, values: Array | None, speaks_for: frozenset[str]) -> Contribution:
    """Returns what a peer brings.

    Args:
        peer: who sends it.
        push: what came.
        values: its values; None when it brings none.
        speaks_for: the workers that come to the round through the peer.

    Raises:
        ProtocolError: it is of another's name, of no known reduction, or has not as many values as its unit.
    """
    if push.sender != peer:
        raise ProtocolError(f"{peer} pushes in the name of {push.sender}")
    reduction = REDUCTIONS.get(push.reduction)
    if reduction is None:
        raise ProtocolError(f"reduction {push.reduction!r} is not one of {', '.join(sorted(REDUCTIONS))}")
    if values is not None and reduction.keeps_count and values.size != push.round.unit.count:
        raise ProtocolError(f"{push.round}: {peer} brings {values.size} values")
    return Contribution(
        peer,
        frozenset(push.covers),
        push.weight,
        push.wait_s,
        Value(push.reduction, values, push.priority),
        idle=values is None,
        speaks_for=speaks_for,
    )


def merge(finished: Finished) -> tuple[str, Array | None]:
    """Returns a round's reduction, and its contributions merged; None where nobody brought values.

    Raises:
        ProtocolError: the contributions do not fit each other.
    """
    names = {contribution.value.reduction for contribution in finished.contributions}
    if len(names) != 1:
        raise ProtocolError(f"{finished.round} is reduced by {sorted(names)} at once")
    name = names.pop()
    held = [c.value for c in finished.contributions if c.value.held is not None]
    if len(dtypes := {np.dtype(value.held.dtype).str for value in held if value.held is not None}) > 1:
        raise ProtocolError(f"{finished.round} holds values of {sorted(dtypes)}")
    return name, _merge_held(REDUCTIONS[name], held, finished.round.unit.count)


def _merge_held(reduction: Reduction, held: Sequence[Value], count: int) -> Array | None:
    if not any(isinstance(value.held, Shelved) for value in held):
        values = [value.held for value in held if isinstance(value.held, np.ndarray)]
        return reduction.merge(values, count) if values else None
    total: Array | None = None
    for value in held:  # one after the other, in the same order, so that only two are in memory
        one = value.values
        assert one is not None  # else it is not held
        total = reduction.merge([one], count) if total is None else reduction.merge([total, one], count)
    return total


def merged(finished: Finished) -> Merged:
    """Merges the contributions of a round.

    Raises:
        ProtocolError: the contributions do not fit each other.
    """
    reduction, values = merge(finished)
    return Merged(
        round=finished.round,
        reduction=reduction,
        values=values,
        weight=finished.weight,
        wait_s=finished.wait_s,
        covers=finished.covers,
        priority=min(each.value.priority for each in finished.contributions),
    )


def of_receiver(round_id: RoundId) -> Unit:
    """Returns the unit that a compressor keeps state for: what one site is answered, no other one has."""
    scope = whole_scope(round_id.scope)
    if scope in (TREE, SITE):
        return round_id.unit
    return replace(round_id.unit, key=f"{round_id.unit.key} ({scope})")
