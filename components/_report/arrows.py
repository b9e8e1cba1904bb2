"""Arrows between the places of a tree's picture: along its links, or beside them from place to place."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.lines import Line2D

from .style import SERIES

_STYLES = ((SERIES[1], "-"), (SERIES[3], (0, (4, 2))))
"""Of the first kind of arrows, and of the second."""
_ASIDE = 0.06
"""How far, in rows, an arrow lies above or below the middle."""
_BEND = 0.25
_CHARACTER, _GAP, _LANE, _ALL_LANES = 3.1, 14.0, 8.0, 56.0
"""Points: half a character's width, from a place to the first lane, and of lanes."""


@dataclass(frozen=True, slots=True)
class Arrow:
    """Something goes from one place to another.

    Attributes:
        kind: what; of two kinds, the first is solid and the second dashed.
        giver: where it comes from.
        taker: where it goes.
    """

    kind: str
    giver: str
    taker: str


def draw_arrows(
    axes: Any, arrows: Sequence[Arrow], places: Mapping[str, tuple[float, float]], boxes: Mapping[str, Any]
) -> None:
    """Draws arrows, and below the picture what they are.

    Args:
        axes: where the tree is drawn.
        arrows: between places of the same depth, or from one depth to the next along a link.
        places: where each place is: its depth and its row.
        boxes: the text of each place.
    """
    kinds = list(dict.fromkeys(arrow.kind for arrow in arrows))
    beside = [arrow for arrow in arrows if places[arrow.giver][0] == places[arrow.taker][0]]
    lanes = lanes_of([(places[arrow.giver][1], places[arrow.taker][1]) for arrow in beside])
    widest = max((len(boxes[name].get_text()) for a in beside for name in (a.giver, a.taker)), default=0)
    step = min(_LANE, _ALL_LANES / (1 + max(lanes, default=0)))
    arms = {
        arrow: widest * _CHARACTER + _GAP + step * lane for arrow, lane in zip(beside, lanes, strict=True)
    }
    for arrow in arrows:
        index = kinds.index(arrow.kind)
        (x, y), (x_to, y_to) = places[arrow.giver], places[arrow.taker]
        aside = (2 * index - 1) * _ASIDE
        way = "arc3"
        if arrow in arms:
            way = f"arc,angleA=0,angleB=0,armA={arms[arrow]:.1f},armB={arms[arrow]:.1f},rad=4"
        elif x_to < x:
            x_to, y_to = x_to + _BEND * (x - x_to), y
        else:
            x, y = x + _BEND * (x_to - x), y_to
        drawn = axes.annotate(
            "",
            xy=(x_to, y_to + aside),
            xytext=(x, y + aside),
            arrowprops=_look(index, way, boxes[arrow.giver], boxes[arrow.taker]),
        )
        drawn.arrow_patch.set_gid(name_of(arrow))
    handles = [
        Line2D([], [], color=color, linestyle=line, linewidth=1.4, label=kind)
        for kind, (color, line) in zip(kinds, _STYLES, strict=False)
    ]
    axes.legend(handles=handles, loc="upper center", bbox_to_anchor=(0.5, 0.0), ncols=2, frameon=False)


def name_of(arrow: Arrow) -> str:
    """Returns what an arrow's element is called in the picture."""
    return "-".join(re.sub(r"[^\w.-]+", "-", part) for part in (arrow.kind, arrow.giver, "to", arrow.taker))


def lanes_of(spans: Sequence[tuple[float, float]]) -> list[int]:
    """Returns a lane for each span, so that none touches another in its lane; short ones lie inside."""
    taken: list[list[tuple[float, float]]] = []
    found = [0] * len(spans)
    for index in sorted(range(len(spans)), key=lambda i: abs(spans[i][1] - spans[i][0])):
        low, high = sorted(spans[index])
        free = (n for n, lane in enumerate(taken) if all(high < a or b < low for a, b in lane))
        lane = next(free, len(taken))
        if lane == len(taken):
            taken.append([])
        taken[lane].append((low, high))
        found[index] = lane
    return found


def _look(index: int, way: str, giver: Any, taker: Any) -> dict[str, Any]:
    color, line = _STYLES[index]
    return {
        "arrowstyle": "-|>,head_length=0.5,head_width=0.22",
        "connectionstyle": way,
        "color": color,
        "linestyle": line,
        "linewidth": 1.4,
        "mutation_scale": 10,
        "shrinkA": 0,
        "shrinkB": 0,
        "patchA": giver.get_bbox_patch(),
        "patchB": taker.get_bbox_patch(),
    }
