"""Plots as inline SVG text; drawn by matplotlib's object interface, so that no global state is touched."""

import io
import re
import uuid
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullFormatter

from .style import GRID, INK, MUTED, SERIES

_SETTINGS = {
    # As text, so that the reader's browser draws names of any script.
    "svg.fonttype": "none",
    "font.family": "DejaVu Sans",
    "font.size": 10,
    "text.color": INK,
    "axes.labelcolor": MUTED,
    "axes.edgecolor": GRID,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": GRID,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
}
_MAX_NAMED = 25
"""Most rows or columns of a matrix whose cells are numbered."""


def lines(
    series: Mapping[str, tuple[Sequence[float], Sequence[float]]],
    *,
    x_label: str,
    y_label: str,
    log_x: bool = False,
    log_y: bool = False,
) -> str:
    """Draws one line a series.

    Args:
        series: name of each line, with its x and y values.
        x_label: what x is, with its unit.
        y_label: what y is, with its unit.
        log_x: whether x is logarithmic; points at 0 are left out then.
        log_y: whether y is logarithmic.

    Returns:
        An `<svg>` element.
    """

    def draw(axes: Any) -> None:
        for index, (name, (x, y)) in enumerate(series.items()):
            marker = "o" if len(x) == 1 else None
            axes.plot(x, y, color=SERIES[index % len(SERIES)], label=name, linewidth=1.8, marker=marker)
        axes.set(xlabel=x_label, ylabel=y_label)
        if all(float(value).is_integer() for x, _ in series.values() for value in x):
            whole = MaxNLocator("auto", integer=True, min_n_ticks=1)  # there is no epoch 1.25
            axes.xaxis.set_major_locator(whole)
        if log_x:
            axes.set_xscale("log", nonpositive="mask")
            axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        if log_y:
            axes.set_yscale("log")
        if len(series) > 1:
            add_legend(axes)

    return to_svg(draw, 3.2)


def bars(names: Sequence[str], values: Sequence[float], *, y_label: str, x_label: str = "") -> str:
    """Draws one bar a name."""
    return grouped_bars(names, {y_label: values}, y_label=y_label, x_label=x_label)


def grouped_bars(
    names: Sequence[str], groups: Mapping[str, Sequence[float]], *, y_label: str, x_label: str = ""
) -> str:
    """Draws, for each name, one bar of each group side by side."""

    def draw(axes: Any) -> None:
        place, width = np.arange(len(names)), 0.8 / len(groups)
        for index, (name, values) in enumerate(groups.items()):
            shift = (index - (len(groups) - 1) / 2) * width
            axes.bar(place + shift, values, width * 0.92, color=SERIES[index % len(SERIES)], label=name)
        _tick_names(axes, "x", names)
        axes.grid(False, axis="x")
        axes.set(xlabel=x_label, ylabel=y_label)
        if len(groups) > 1:
            add_legend(axes)

    return to_svg(draw, 3.2)


def histogram(values: Any, *, x_label: str, y_label: str = "count", log: bool = False) -> str:
    """Draws a histogram; with `log`, both axes are logarithmic and values below 1 are left out."""

    def draw(axes: Any) -> None:
        data = np.asarray(values, dtype=float)
        edges: Any = 40
        if log and bool((data >= 1).any()):
            data = data[data >= 1]
            edges = np.unique(np.rint(np.geomspace(data.min(), data.max() + 1, 30))) - 0.5
            axes.set_xscale("log")
            axes.set_yscale("log")
        axes.hist(data, bins=edges, color=SERIES[0])
        if isinstance(edges, np.ndarray):
            axes.set_ylim(bottom=0.7)
            for axis in (axes.xaxis, axes.yaxis):
                axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
                axis.set_minor_formatter(NullFormatter())
        axes.set(xlabel=x_label, ylabel=y_label)

    return to_svg(draw, 3.0)


def confusion_matrix(matrix: Any, names: Sequence[str]) -> str:
    """Draws a confusion matrix [true, predicted], shaded by the share of the true class."""
    return heat_map(matrix, names, names, x_label="predicted class", y_label="class")


def heat_map(matrix: Any, rows: Sequence[str], columns: Sequence[str], *, x_label: str, y_label: str) -> str:
    """Draws counts [rows, columns], each cell shaded by its share of the row."""
    counts = np.asarray(matrix)
    share = counts / np.maximum(1, counts.sum(axis=1, keepdims=True))

    def draw(axes: Any) -> None:
        axes.imshow(share, cmap="Blues", vmin=0, vmax=1, aspect="auto")
        if max(counts.shape) <= _MAX_NAMED:
            for (row, column), count in np.ndenumerate(counts):
                colour = "white" if share[row, column] > 0.55 else INK
                axes.text(column, row, f"{count:,}", ha="center", va="center", color=colour, fontsize=8)
        _tick_names(axes, "x", columns)
        _tick_names(axes, "y", rows)
        axes.grid(False)
        axes.set(xlabel=x_label, ylabel=y_label)

    return to_svg(draw, min(9.0, 1.4 + 0.34 * len(rows)))


def _tick_names(axes: Any, axis: str, names: Sequence[str]) -> None:
    step = max(1, len(names) // _MAX_NAMED)
    ticks = list(range(0, len(names), step))
    shown = [name if len(name) <= 22 else f"{name[:21]}…" for name in (str(names[i]) for i in ticks)]
    turned = axis == "x" and sum(map(len, shown)) > 70
    getattr(axes, f"set_{axis}ticks")(ticks, shown, **({"rotation": 35, "ha": "right"} if turned else {}))


def add_legend(axes: Any) -> None:
    """Adds the names of what was drawn, beside it."""
    axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), borderaxespad=0)


def to_svg(draw: Callable[[Any], None], height: float) -> str:
    """Returns what `draw` draws on axes as an `<svg>` element, eight inches wide and `height` high."""
    with matplotlib.rc_context(_SETTINGS), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=r"Glyph .* missing from font")
        figure = Figure(figsize=(8, height), layout="constrained")
        draw(figure.subplots())
        target = io.StringIO()
        figure.savefig(target, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    return _own_ids(target.getvalue()[target.getvalue().index("<svg") :])


def _own_ids(svg: str) -> str:
    """Makes the ids unique, since several figures share one page."""
    mark = uuid.uuid5(uuid.NAMESPACE_OID, svg).hex[:8]
    svg = re.sub(r'\bid="', f'id="f{mark}-', svg)
    svg = re.sub(r"url\(#", f"url(#f{mark}-", svg)
    return re.sub(r'href="#', f'href="#f{mark}-', svg)
