"""Sites relay for each other: plans and rates travel, contributions are merged and results handed on.

    plans, gathering, meter   pure
    peers                     a site's links to other sites
    site, root                what a node does beside its rounds
    assembly                  makes these of a tree's topology and the user's options

An aggregator sees two Protocols of it: a site's way up, and at the root what is told beside results.
"""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from ..links.client import Pending, Terms
from ..transport.base import Traffic
from ..wire.messages import Answer, Array, Message, Push
from ..wire.units import RoundId


class Uplink(Protocol):
    """A node's way to the node above it; a `Client`, or what has one."""

    @property
    def first_round(self) -> int | None:
        """The round to begin with where the others have begun before; None at the start of all."""

    def push(
        self, round_id: RoundId, values: Array | None, terms: Terms, then: Callable[[Pending], None]
    ) -> Any:
        """Sends a contribution; `then` is called once, in any thread, when there is a result or an error."""

    def check(self) -> None:
        """Asks again, or gives up, where a result takes too long; called from time to time."""

    def links(self) -> dict[str, Traffic]:
        """Returns the bytes of its links so far, by the node at the other end."""

    def close(self, reason: str = "") -> None:
        """Ends all links; nothing is called afterwards."""


class Relaying(Protocol):
    """What the root does where sites relay for each other; called in the threads of their connections."""

    def take(self, peer: str, message: Message) -> bool:
        """Takes what is no contribution; returns whether it was of relaying."""

    def pushed(self, peer: str, push: Push) -> None:
        """Called with each contribution, before it is counted."""

    def receivers(self, answer: Answer, waiting: Sequence[str]) -> Sequence[str]:
        """Returns who of the children gets a result from the root; called once a round, before it is sent."""
