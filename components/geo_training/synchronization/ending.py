"""How workers with unequal numbers of steps end together.

A round ends when every worker is in it. So one that has taken its last step stays, and takes part without
values, until a round has come in which nobody brought any: then all have taken theirs, and all know it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..messages import Array
from ..plane import Flight, Layout, Plane


@dataclass(frozen=True, slots=True)
class Ask:
    """Rounds that others may still begin.

    Attributes:
        role: first word of their keys.
        layout: what is exchanged.
        scope: whom they join; None for the members' own.
    """

    role: str
    layout: Layout
    scope: str | None = None


def stay_until_all_are_done(
    plane: Plane, asks: Sequence[Ask], take: Callable[[Ask, Array], None] = lambda _ask, _values: None
) -> None:
    """Takes part in rounds, without values, until nobody brings any.

    Args:
        plane: what joins the workers.
        asks: every kind of round that workers which have not ended may begin.
        take: called with the result of each round in which somebody brought values, in the rounds' order.

    Raises:
        GeoError: a round was given up.
    """

    def begin(ask: Ask) -> Flight:
        return plane.mean(ask.role, ask.layout, None, 0, ask.scope)

    flying = {ask: begin(ask) for ask in asks}
    while flying:
        plane.any_landed(list(flying.values()))
        for ask, flight in list(flying.items()):
            if flight.landed:
                values = flight.wait()
                if values is None:
                    del flying[ask]
                else:
                    take(ask, values)
                    flying[ask] = begin(ask)
