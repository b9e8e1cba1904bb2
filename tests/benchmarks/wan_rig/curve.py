"""Accuracy over time, of all sites together; knows nothing of processes."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from .records import Row


@dataclass(frozen=True, slots=True)
class Point:
    """Where a system stands at one time."""

    seconds: float
    """Of training."""
    step: int
    """Batches of the worker that is furthest."""
    accuracy: float
    """Of the sites' latest weights, the one that counts."""
    moment: float
    """The same time on the monotonic clock."""


def curve(
    judged: Iterable[tuple[Row, float]], num_sites: int, choose: Callable[[list[float]], float] = min
) -> list[Point]:
    """Returns one point for each snapshot from when all sites have one.

    Args:
        judged: snapshots with their accuracies, in any order.
        num_sites: number of sites.
        choose: picks the accuracy that counts from those of all sites' latest snapshots.
    """
    latest: dict[str, tuple[Row, float]] = {}
    points: list[Point] = []
    for row, accuracy in sorted(judged, key=lambda pair: (pair[0].moment, pair[0].site)):
        latest[row.site] = (row, accuracy)
        if len(latest) == num_sites:
            rows = [row for row, _ in latest.values()]
            points.append(
                Point(
                    seconds=max(row.seconds for row in rows),
                    step=max(row.step for row in rows),
                    accuracy=choose([accuracy for _, accuracy in latest.values()]),
                    moment=row.moment,
                )
            )
    return points


def reached(points: Sequence[Point], target: float) -> Point | None:
    """Returns the first point whose accuracy is the target or more."""
    return next((point for point in points if point.accuracy >= target), None)
