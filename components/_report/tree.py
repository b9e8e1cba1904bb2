"""A tree of places with what is known of the links between them, root on the left."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .arrows import Arrow, draw_arrows
from .plots import to_svg
from .style import GRID, INK, MUTED, SERIES

_MOST_INCHES = 40.0
_LEAF_INCHES = 0.62
_LEGEND_INCHES = 0.3
_ASIDE, _ASIDE_OF_ARROWS = 0.09, 0.15
"""How far, in rows, what is written lies from its line."""
_BOX = {"boxstyle": "round,pad=0.45", "facecolor": "white", "edgecolor": GRID, "linewidth": 1.2}
_NAME_CHARACTERS = 22


@dataclass(frozen=True, slots=True)
class Edge:
    """A link of the tree.

    Attributes:
        lower: the place at its lower end, the one farther from the root; each has one edge above it at most.
        upper: the place at its upper end.
        above: what is written above the line.
        below: what is written below it.
        weight: how heavy the line is, 0 to 1.
    """

    lower: str
    upper: str
    above: str
    below: str
    weight: float = 0.0


def tree(edges: Sequence[Edge], arrows: Sequence[Arrow] = ()) -> str:
    """Draws a tree, or several beside one another.

    Args:
        edges: its links; of places with the same upper end the first is drawn first.
        arrows: drawn on top; those from or to other places are left out.

    Returns:
        An `<svg>` element.
    """
    places = positions(edges)
    deepest = max(x for x, _ in places.values())
    num_rows = 1 + max(y for _, y in places.values())
    shown_arrows = [arrow for arrow in arrows if {arrow.giver, arrow.taker} <= places.keys()]

    def draw(axes: Any) -> None:
        for edge in edges:
            _draw_edge(axes, edge, places, _ASIDE_OF_ARROWS if shown_arrows else _ASIDE)
        boxes = {}
        for name, (x, y) in places.items():
            shown = name if len(name) <= _NAME_CHARACTERS else f"{name[: _NAME_CHARACTERS - 1]}…"
            boxes[name] = axes.text(x, y, shown, ha="center", va="center", color=INK, bbox=_BOX)
        axes.set(xlim=(-0.25, deepest + 0.25), ylim=(num_rows - 0.4, -0.6))
        axes.axis("off")
        if shown_arrows:
            draw_arrows(axes, shown_arrows, places, boxes)

    legend = _LEGEND_INCHES if shown_arrows else 0.0
    return to_svg(draw, min(_MOST_INCHES, 0.5 + _LEAF_INCHES * num_rows + legend))


def positions(edges: Sequence[Edge]) -> dict[str, tuple[float, float]]:
    """Returns where each place is drawn: its depth, and its row, one a leaf; a place is amid those below it.

    Raises:
        ValueError: the edges are no trees: a place has two above it, or is above itself.
    """
    children: dict[str, list[str]] = {}
    for edge in edges:
        children.setdefault(edge.upper, []).append(edge.lower)
    lower = [edge.lower for edge in edges]
    if len(set(lower)) < len(lower):
        raise ValueError("a place of the tree has two links above it")
    found: dict[str, tuple[float, float]] = {}
    rows = 0

    def put(name: str, depth: int) -> float:
        nonlocal rows
        below = [put(child, depth + 1) for child in children.get(name, [])]
        if below:
            row = (below[0] + below[-1]) / 2
        else:
            row, rows = float(rows), rows + 1
        found[name] = (float(depth), row)
        return row

    for root in (name for name in children if name not in lower):
        put(root, 0)
    if len(found) < len({*lower, *children}):
        raise ValueError("a place of the tree is above itself")
    return found


def _draw_edge(axes: Any, edge: Edge, places: dict[str, tuple[float, float]], aside: float) -> None:
    (x, y), (x_upper, y_upper) = places[edge.lower], places[edge.upper]
    bend = x_upper + 0.25 * (x - x_upper)
    width = 1.0 + 4.0 * edge.weight
    axes.plot(
        [x_upper, bend, x],
        [y_upper, y, y],
        color=SERIES[0],
        linewidth=width,
        solid_joinstyle="round",
        zorder=0,
        alpha=0.55,
    )
    middle = (bend + x) / 2 - 0.06
    axes.text(middle, y - aside, edge.above, ha="center", va="bottom", color=MUTED, fontsize=8)
    axes.text(middle, y + aside, edge.below, ha="center", va="top", color=MUTED, fontsize=8)
