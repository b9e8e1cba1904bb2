"""How fast datagrams may leave: a token bucket whose rate follows what comes through. Pure.

Where nearly all arrives the rate grows; where much is lost it falls to what came through. A few percent of
loss, as of radio and long links, do not slow it down: congestion loses more than that.
"""

LOWEST, HIGHEST = 25e3, 125e6
"""Bytes a second."""
_FIRST = 1.25e6
_ENOUGH = 0.9
"""Share that arrives of which the rate may grow."""
_JUDGED = 32
"""Datagrams of which a share says something: of one or two a late one is half."""
_GROWTH, _MOST_CUT = 1.1, 0.5
_BURST_S, _BURST_BYTES = 0.005, 6000


class Pace:
    """The datagrams of one link.

    Args:
        rate: bytes a second at first.
    """

    def __init__(self, rate: float = _FIRST) -> None:
        self.rate = rate
        self._credit = 0.0
        self._seen: float | None = None
        self._sent = self._arrived = 0

    def delay(self, num_bytes: int, now: float) -> float:
        """Returns the seconds until a datagram may leave; with 0 it counts as sent.

        Args:
            num_bytes: of the datagram.
            now: seconds on any clock that never goes back.
        """
        burst = max(_BURST_BYTES, self.rate * _BURST_S)
        past = 0.0 if self._seen is None else now - self._seen
        self._credit = burst if self._seen is None else min(burst, self._credit + past * self.rate)
        self._seen = now
        if self._credit > 0:
            self._credit -= num_bytes
            return 0.0
        return (1.0 - self._credit) / self.rate

    def told(self, sent: int, arrived: int) -> None:
        """Takes how many of some datagrams arrived in time; few are judged with the next ones."""
        self._sent += sent
        self._arrived += arrived
        if self._sent < _JUDGED:
            return
        share = self._arrived / self._sent
        self._sent = self._arrived = 0
        factor = _GROWTH if share >= _ENOUGH else max(share, _MOST_CUT)
        self.rate = min(HIGHEST, max(LOWEST, self.rate * factor))
