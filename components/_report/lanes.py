"""A timeline: one lane a place, filled by the shares of time that it spent with each thing."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .plots import add_legend, to_svg
from .style import GRID, SERIES

_GAP = 0.18
_IDLE = "#b4bec9"
_MOST_INCHES = 40.0


@dataclass(frozen=True, slots=True)
class Lane:
    """One place.

    Attributes:
        name: what it is called; a lane without one belongs to the lane above.
        shares: [bins] by thing, 0 to 1, stacked from below; their sum is at most 1.
        height: of the lane; a usual one has 1.
    """

    name: str
    shares: Mapping[str, npt.NDArray[np.float64]]
    height: float = 1.0


def timeline(lanes: Sequence[Lane], edges: npt.NDArray[np.float64], *, x_label: str, idle: str = "") -> str:
    """Draws lanes below one another.

    Args:
        lanes: from above.
        edges: [bins + 1], of the bins of all lanes.
        x_label: what these are, with their unit.
        idle: the thing that is doing nothing, which is drawn in grey; empty where there is none.

    Returns:
        An `<svg>` element.
    """
    things = list(dict.fromkeys(thing for lane in lanes for thing in lane.shares))
    busy = [thing for thing in things if thing != idle]
    colours = {thing: SERIES[index % len(SERIES)] for index, thing in enumerate(busy)} | {idle: _IDLE}

    def draw(axes: Any) -> None:
        top, middles = 0.0, []
        for lane in lanes:
            top -= _GAP if lane.name else _GAP / 3
            bottom = top - lane.height
            axes.axhspan(bottom, top, color=GRID, alpha=0.45, linewidth=0)
            _fill(axes, lane, bottom, edges, colours)
            middles.append((bottom + top) / 2)
            top = bottom
        for thing in things:
            axes.fill_between([], [], [], color=colours[thing], label=thing, linewidth=0)
        axes.set_yticks(middles, [lane.name for lane in lanes])
        axes.tick_params(axis="y", length=0)
        axes.set(xlim=(edges[0], edges[-1]), ylim=(top - _GAP, 0), xlabel=x_label)
        axes.grid(False, axis="y")
        axes.spines["left"].set_visible(False)
        add_legend(axes)

    return to_svg(draw, min(_MOST_INCHES, 0.8 + 0.55 * sum(lane.height + _GAP for lane in lanes)))


def _fill(
    axes: Any, lane: Lane, bottom: float, edges: npt.NDArray[np.float64], colours: Mapping[str, str]
) -> None:
    below = np.full(len(edges), bottom)
    for thing, shares in lane.shares.items():
        steps = np.append(shares, shares[-1:])
        above = below + lane.height * np.clip(steps, 0, 1)
        axes.fill_between(edges, below, above, step="post", color=colours[thing], linewidth=0)
        below = above
