"""Counts the bytes of a link and tells how long each frame took to come in."""

from dataclasses import dataclass, field

from ..transport.base import Traffic
from .observer import RECEIVE, UNOBSERVED, Observer, Span


@dataclass(slots=True)
class ObservedTraffic(Traffic):
    """See `Traffic`.

    Attributes:
        link: the link, by its lower end.
        observer: who is told.
    """

    link: str = ""
    observer: Observer = field(default=UNOBSERVED, repr=False, compare=False)

    def came(self, num_bytes: int, began: float, ended: float) -> None:
        """See `Traffic`."""
        self.received_bytes += num_bytes
        self.observer.spent(Span(RECEIVE, began, ended, self.link, num_bytes))
