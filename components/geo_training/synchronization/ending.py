"""How workers with unequal numbers of steps end together.

A round ends when every worker is in it. So one that has taken its last step stays, and takes part without
values, until a round has come in which nobody brought any: then all have taken theirs, and all know it.
Where a step may be without values too, as that of a gradient without samples, all are asked then.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from ..wire.messages import Array
from ..workers.plane import Flight, Layout, Plane
from .base import Replica, Update

ENDING = "ending"
"""Role of the question who still takes steps."""


@dataclass(frozen=True, slots=True)
class Ask:
    """Rounds that others may still begin.

    Attributes:
        role: first word of their keys.
        layout: what is exchanged.
        scope: whom they join; None for the members' own.
        reduction: how they are merged, `mean`, `sum` or `max`.
    """

    role: str
    layout: Layout
    scope: str | None = None
    reduction: str = "mean"


def stay_until_all_are_done(
    plane: Plane,
    asks: Mapping[Ask, Flight | None],
    take: Callable[[Ask, Array, float], None],
    ended: Callable[[Ask], bool] = lambda _: True,
) -> None:
    """Takes part in rounds, without values, until nobody brings any.

    Args:
        plane: what joins the workers.
        asks: every kind of round that workers which have not ended may begin, and the flight of the last
            values of one's own in it, which is waited for like the others; of results that have come, those
            of the first kind are taken first.
        take: called with the result and the weight of each round in which somebody brought values, in order.
        ended: called with what nobody brought any of; tells whether all have ended, and not only stepped
            without.

    Raises:
        GeoError: a round was given up.
    """

    def begin(ask: Ask) -> Flight:
        if ask.reduction == "sum":
            return plane.sum(ask.role, ask.layout, None, ask.scope)
        if ask.reduction == "max":
            return plane.max(ask.role, ask.layout, None, ask.scope)
        return plane.mean(ask.role, ask.layout, None, 0, ask.scope)

    flying = {ask: begin(ask) if flight is None else flight for ask, flight in asks.items()}
    while flying:
        plane.any_landed(list(flying.values()))
        # Asked about the last first, so that of two that land meanwhile the one before is not missed.
        *_, ask = [ask for ask in reversed(flying) if flying[ask].landed]
        values = flying[ask].wait()
        if values is not None:
            take(ask, values, flying[ask].weight)
        elif ended(ask):
            del flying[ask]
            continue
        flying[ask] = begin(ask)


def all_have_ended(plane: Plane, scope: str, *, has_ended: bool) -> bool:
    """Tells whether no worker takes steps any more; all in a scope ask after a round that brought nothing."""
    steps = np.array([0.0 if has_ended else 1.0])
    total = plane.sum(ENDING, Layout.of([("steps", 1)]), steps, scope).wait()
    assert total is not None  # our own is in it
    return not total.any()


def step_without_samples(plane: Plane, replica: Replica, update: Update, *, has_ended: bool) -> bool:
    """Steps by a gradient of zero, as all others do, unless all have ended; tells whether they have.

    Args:
        plane: what joins the workers.
        replica: the worker's model.
        update: the local optimizer.
        has_ended: whether this worker has.
    """
    ended = all_have_ended(plane, plane.members.scope, has_ended=has_ended)
    if not ended:
        update(np.zeros(replica.layout.count, np.float32))
    return ended
