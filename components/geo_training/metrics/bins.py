"""Seconds of each activity over time, in a bounded number of equal bins whose width doubles as time runs on.

A short training is drawn finely, a long one coarsely, and neither takes more memory. Pure.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from ..wire.messages import Array

NUM_BINS = 256
FIRST_WIDTH_S = 1 / 64
"""Width of a bin at first: 256 of them are 4 seconds."""


@dataclass(slots=True)
class Bins:
    """Seconds by activity and bin; bin `i` is from `began + i * width_s` on.

    Attributes:
        began: when the first bin begins, in seconds.
        width_s: of every bin.
        series: NUM_BINS numbers by activity.
    """

    began: float
    width_s: float = FIRST_WIDTH_S
    series: dict[str, list[float]] = field(default_factory=dict)

    def add(self, activity: str, began: float, ended: float) -> None:
        """Adds a span; what of it lies before the first bin is left out."""
        began, ended = began - self.began, ended - self.began
        at, values = int(ended / self.width_s), self.series.get(activity)
        if values is not None and at < NUM_BINS and at * self.width_s <= began < ended:
            values[at] += ended - began  # nearly all are within a bin
            return
        began = max(0.0, began)
        if ended <= began:
            return
        while ended > NUM_BINS * self.width_s:
            self._double()
        if activity not in self.series:
            self.series[activity] = [0.0] * NUM_BINS
        values = self.series[activity]
        first, last = int(began / self.width_s), min(int(ended / self.width_s), NUM_BINS - 1)
        if first >= last:
            values[last] += ended - began
            return
        values[first] += (first + 1) * self.width_s - began
        for between in range(first + 1, last):
            values[between] += self.width_s
        values[last] += ended - last * self.width_s

    def total_s(self, activity: str) -> float:
        """Returns all seconds of an activity."""
        return sum(self.series.get(activity, ()))

    def to_dict(self) -> dict[str, object]:
        """Returns the form that JSON holds: without the bins after the last one in use."""
        used = 1 + max((i for values in self.series.values() for i, s in enumerate(values) if s), default=-1)
        series = {name: [round(s, 6) for s in values[:used]] for name, values in self.series.items()}
        return {"width_s": self.width_s, "series": series}

    def _double(self) -> None:
        self.width_s *= 2
        for values in self.series.values():
            pairs = zip(values[::2], values[1::2], strict=True)
            values[:] = [*map(sum, pairs), *[0.0] * (NUM_BINS // 2)]


def regrid(series: Mapping[str, Array], width_s: float, shift_s: float, grid: Array) -> dict[str, Array]:
    """Returns the shares of time of activities in the bins of another grid.

    Args:
        series: seconds by bin and activity.
        width_s: of a bin.
        shift_s: when the first bin begins, on the time of the grid.
        grid: [n + 1] edges, ascending, evenly spaced.

    Returns:
        [n] by activity, 0 to about 1 (above, where several things of a kind went on at once).
    """
    shares = {}
    for name, values in series.items():
        edges = shift_s + width_s * np.arange(len(values) + 1)
        so_far = np.concatenate([[0.0], np.cumsum(values)])
        shares[name] = np.diff(np.interp(grid, edges, so_far)) / np.diff(grid)
    return shares
