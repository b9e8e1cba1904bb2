"""What happens in a process, as clients, aggregators and workers tell it. Knows not what becomes of it.

A link is named by its lower end, the one farther from the root, at both its ends.
"""

from typing import NamedTuple, Protocol

from ..wire.messages import Payload
from ..wire.units import RoundId

SEND = "send"
"""Packing what goes up, and handing it to the connection."""
WAIT = "wait"
"""Standing still until a result comes."""
RECEIVE = "receive"
"""A frame of a link comes in: from its first byte until its last."""
TRAINING = "training"
"""From one step's end to the next one's, whatever is done meanwhile."""
COMPUTE = "compute"
"""What is left of the training without sending and waiting."""


class Span(NamedTuple):
    """Time spent with one thing; made so often that a tuple is worth it.

    Attributes:
        activity: with what.
        began: seconds on a clock that never goes back.
        ended: the same.
        link: on which link; empty where it is none's.
        num_bytes: that came meanwhile.
    """

    activity: str
    began: float
    ended: float
    link: str = ""
    num_bytes: int = 0


class Observer(Protocol):
    """Is told what happens, at once, by any thread; must return soon and raise nothing."""

    def pushed(self, link: str, round_id: RoundId, payload: Payload, block_bytes: int = 0) -> None:
        """A contribution to a round goes up a link, told at either end, before it can be answered.

        Args:
            link: the link.
            round_id: the round.
            payload: of the contribution.
            block_bytes: of the payloads of blocks that it only ends: that were sent, or that came in time.
        """

    def answered(self, link: str, round_id: RoundId, payload: Payload, block_bytes: int = 0) -> None:
        """The result of a round went down a link, told at either end; see `pushed`."""

    def spent(self, span: Span) -> None:
        """Time was spent."""

    def stepped(self, at: float) -> None:
        """A worker has taken a step.

        Args:
            at: when it ended, seconds on the clock of `Span`.
        """


class Unobserved:
    """See `Observer`: forgets all of it."""

    def pushed(self, link: str, round_id: RoundId, payload: Payload, block_bytes: int = 0) -> None:
        """See `Observer`."""

    def answered(self, link: str, round_id: RoundId, payload: Payload, block_bytes: int = 0) -> None:
        """See `Observer`."""

    def spent(self, span: Span) -> None:
        """See `Observer`."""

    def stepped(self, at: float) -> None:
        """See `Observer`."""


UNOBSERVED = Unobserved()
