"""Which of a node's peers take part: a pure failure detector, and from which round on who comes anew does.

A peer is lost when its connection ends, and dead once nothing was heard of it for `silence_s`; it may come
back. A process that takes the place of an earlier one of the same name has a higher incarnation, and takes
part from a round on that the earlier one has no part in. Takes time as an argument. Knows nothing of
networks, nor of what a round is about.

Detectors by a fixed time without a word: Chandra and Toueg, *Unreliable Failure Detectors for Reliable
Distributed Systems*, 1996; incarnations: Das et al., *SWIM*, DSN 2002.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

from ..errors import ProtocolError


@dataclass(slots=True)
class _Peer:
    incarnation: int | None = None
    heard: float = math.inf  # of one that is connected, or has never been: it is not dead
    is_connected: bool = False
    has_left: bool = False
    first_rounds: dict[str, int] = field(default_factory=dict)


class Members:
    """The peers that dial one node. One thread at a time calls it.

    Args:
        names: of the peers.
        silence_s: seconds without a word after which a peer is dead; None for never.
    """

    def __init__(self, names: Iterable[str], silence_s: float | None = None) -> None:
        self._peers = {name: _Peer() for name in names}
        self._silence_s = silence_s

    def await_all(self, now: float) -> None:
        """Takes who has not come as lost now: called where all had come to this node's earlier process."""
        for peer in self._peers.values():
            if not peer.is_connected and peer.heard == math.inf:
                peer.heard = now

    def is_new(self, name: str, incarnation: int) -> bool:
        """Tells whether a process is another one than that which came last by this name."""
        return self._peers[name].incarnation != incarnation

    def join(self, name: str, incarnation: int) -> None:
        """Notes that a peer has connected.

        Raises:
            ProtocolError: a later process of this name has come before.
        """
        peer = self._peers[name]
        if peer.incarnation is not None and incarnation < peer.incarnation:
            raise ProtocolError(f"{name} is of an earlier process, a later one has taken its place")
        if peer.incarnation != incarnation:
            peer.first_rounds = {}
        peer.incarnation, peer.is_connected, peer.has_left = incarnation, True, False

    def enter(self, name: str, scope: str, number: int) -> None:
        """Notes that a peer takes part in the rounds of a scope from a number on, and not before."""
        first_rounds = self._peers[name].first_rounds
        first_rounds[scope] = max(number, first_rounds.get(scope, 0))

    def lose(self, name: str, heard: float) -> None:
        """Notes that the connection of a peer has ended.

        Args:
            name: the peer.
            heard: when something was heard of it for the last time.
        """
        self._peers[name].is_connected, self._peers[name].heard = False, heard

    def leave(self, name: str) -> None:
        """Notes that a peer has done its part: it is not dead."""
        self._peers[name].has_left = True

    @property
    def have_left(self) -> frozenset[str]:
        """Peers that have done their part."""
        return frozenset(name for name, peer in self._peers.items() if peer.has_left)

    def dead(self, now: float) -> frozenset[str]:
        """Returns the peers that were not heard for too long; none of them is connected."""
        if self._silence_s is None:
            return frozenset()
        return frozenset(name for name in self._peers if self.lost_for(name, now) > self._silence_s)

    def lost_for(self, name: str, now: float) -> float:
        """Returns the seconds since a peer that is lost was heard; 0 for one that is not, or never came."""
        peer = self._peers[name]
        if peer.is_connected or peer.has_left or peer.heard == math.inf:
            return 0.0
        return now - peer.heard

    def outside(self, scope: str, number: int) -> frozenset[str]:
        """Returns the peers that enter after a round, and are not waited for in it."""
        return frozenset(
            name for name, peer in self._peers.items() if number < peer.first_rounds.get(scope, number)
        )
