"""Which results of finished rounds are in memory, the one that was stored first first. Pure."""

from collections.abc import Iterator

from ..wire.units import RoundId


class Results:
    """What they take.

    Attributes:
        num_bytes: of all.
    """

    def __init__(self) -> None:
        self.num_bytes = 0
        self._bytes: dict[RoundId, int] = {}

    def add(self, round_id: RoundId, num_bytes: int) -> None:
        """Notes a result; once a round."""
        self._bytes[round_id] = num_bytes
        self.num_bytes += num_bytes

    def drop(self, round_id: RoundId) -> None:
        """Notes that a result is not in memory any more, if it was."""
        self.num_bytes -= self._bytes.pop(round_id, 0)

    def beyond(self, most_bytes: float) -> Iterator[RoundId]:
        """Yields the oldest ones, as many as must go so that the others are of so many bytes."""
        left = self.num_bytes
        for round_id, num_bytes in self._bytes.items():
            if left <= most_bytes:
                return
            left -= num_bytes
            yield round_id
