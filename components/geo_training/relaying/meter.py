"""How long transfers over one link take, by the receipts that come back. Pure: time is an argument.

The clock runs while anything is on the way: from when it was sent, or where several are, from the receipt of
the one before. It is the sender's, on the wall: waiting for the network is what is measured.
"""

from collections.abc import Hashable

from ..wire.messages import Answer, Push

_HEADER_BYTES = 128
"""About what a frame has beside its values."""


class Meter:
    """One link in one direction; not for several threads at once."""

    def __init__(self) -> None:
        self._under_way: dict[Hashable, int] = {}
        self._since = 0.0
        self._num_bytes = 0
        self._seconds = 0.0

    @property
    def waits(self) -> bool:
        """Whether a receipt is outstanding."""
        return bool(self._under_way)

    @property
    def since(self) -> float:
        """When the last receipt came, or what is on the way was sent."""
        return self._since

    def sent(self, what: Hashable, num_bytes: int, now: float) -> None:
        """Notes a transfer that begins, or waits its turn."""
        if not self._under_way:
            self._since = now
        self._under_way[what] = num_bytes

    def received(self, what: Hashable, now: float) -> None:
        """Notes a receipt; one of nothing that is on the way is passed over."""
        num_bytes = self._under_way.pop(what, None)
        if num_bytes is not None:
            self._num_bytes += num_bytes
            self._seconds += now - self._since
            self._since = now

    def lost(self) -> None:
        """Notes that what is on the way will not come."""
        self._under_way.clear()

    def take(self) -> tuple[int, float]:
        """Returns bytes and seconds since it was last asked."""
        taken = self._num_bytes, self._seconds
        self._num_bytes, self._seconds = 0, 0.0
        return taken


def frame_bytes(message: Push | Answer) -> int:
    """Returns about the bytes of a frame."""
    return message.payload.num_bytes + _HEADER_BYTES
