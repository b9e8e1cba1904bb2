"""Throughput between nodes as transfers show it, with an age. Pure: rounds are arguments. Knows no network.

A measurement is bytes over the seconds of a clock on the wall, from when the first of them was sent to when
the other end had said that the last is there; a new one weighs by half against those before it. It holds for
some rounds only: what nothing was sent over for longer is as unknown as what never was measured, because
links between sites change.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

Link: TypeAlias = tuple[str, str]
"""Who sends to whom."""

_NEWEST = 0.5
"""Share of the newest measurement in an estimate."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """What is known of a link.

    Attributes:
        bytes_per_s: throughput; 0 where it could not be used.
        round: number of the round that it was last measured in.
    """

    bytes_per_s: float
    round: int


class Rates:
    """The estimates of some links.

    Args:
        links: who may send to whom.
        expires: rounds for which a measurement holds.
    """

    def __init__(self, links: Iterable[Link], expires: int) -> None:
        self.links = frozenset(links)
        self._expires = expires
        self._estimates: dict[Link, Estimate] = {}

    def measured(self, link: Link, num_bytes: int, seconds: float, number: int) -> None:
        """Takes in a transfer; one over a link that is none of these is passed over.

        Args:
            link: who sent to whom.
            num_bytes: what was sent, above 0.
            seconds: how long it took, above 0.
            number: of the round.
        """
        if link not in self.links or num_bytes <= 0 or seconds <= 0:
            return
        rate, before = num_bytes / seconds, self.live(link, number)
        if before is not None and before.bytes_per_s > 0:
            rate = _NEWEST * rate + (1 - _NEWEST) * before.bytes_per_s
        self._estimates[link] = Estimate(rate, number)

    def failed(self, link: Link, number: int) -> None:
        """Notes that nothing could be sent over a link; tried again when that has expired."""
        if link in self.links:
            self._estimates[link] = Estimate(0.0, number)

    def live(self, link: Link, number: int) -> Estimate | None:
        """Returns what holds in a round; None for what was never measured or has expired."""
        estimate = self._estimates.get(link)
        return estimate if estimate is not None and number - estimate.round <= self._expires else None

    def last(self, link: Link) -> Estimate | None:
        """Returns what was measured last, however long ago."""
        return self._estimates.get(link)

    def unknown(self, number: int) -> list[Link]:
        """Returns the links of which nothing holds in a round: never measured ones first, then the oldest."""
        unknown = [link for link in self.links if self.live(link, number) is None]
        return sorted(unknown, key=lambda link: (self._age(link), link))

    def never(self) -> list[Link]:
        """Returns the links that were never measured, sorted."""
        return sorted(self.links - self._estimates.keys())

    def known(self, number: int) -> Mapping[Link, float]:
        """Returns bytes a second of all links of which something holds in a round."""
        live = {link: self.live(link, number) for link in sorted(self.links)}
        return {link: estimate.bytes_per_s for link, estimate in live.items() if estimate is not None}

    def _age(self, link: Link) -> int:
        estimate = self._estimates.get(link)
        return -1 if estimate is None else estimate.round
