"""What a process says of its links, and how seldom: what it waits for, and whom it turns away.

Takes time as an argument; knows nothing of networks.
"""

from collections.abc import Callable

from ..._launch import progress

FIRST_S = 5.0
"""Seconds without what is waited for after which that is said; then after twice as many, and so on."""
EVERY_S = 10.0
"""Seconds between two lines about peers that are turned away, however many come."""


class Patience:
    """Says what is waited for, when it takes long.

    Args:
        began: when the waiting began, in seconds on a clock that never goes back.
        say: takes the lines.
    """

    def __init__(self, began: float, say: Callable[[str], None] = progress) -> None:
        self._began, self._say = began, say
        self._next_s = FIRST_S

    def left(self, now: float) -> float:
        """Returns the seconds until the next line."""
        return max(0.0, self._began + self._next_s - now)

    def check(self, now: float, what: Callable[[], str]) -> None:
        """Says it where it is time; called from time to time."""
        waited_s = now - self._began
        if waited_s >= self._next_s:
            self._say(f"waits for {what()}, for {waited_s:.0f} s")
            while self._next_s <= waited_s:
                self._next_s *= 2


class Refusals:
    """Says why peers are turned away, but does not fill the log for one that comes again and again.

    One thread at a time calls it.

    Args:
        name: the node that turns them away.
        say: takes the lines.
    """

    def __init__(self, name: str, say: Callable[[str], None] = progress) -> None:
        self._name, self._say = name, say
        self._said: float | None = None
        self._kept = 0

    def note(self, peer: str, reason: str, now: float) -> None:
        """Notes that a peer was turned away.

        Args:
            peer: where it came from.
            reason: why, in one line.
            now: seconds on a clock that never goes back.
        """
        if self._said is not None and now - self._said < EVERY_S:
            self._kept += 1
            return
        others = f" ({self._kept} others since the last such line)" if self._kept else ""
        self._said, self._kept = now, 0
        self._say(f"{self._name} turns away {peer}: {reason}{others}")
