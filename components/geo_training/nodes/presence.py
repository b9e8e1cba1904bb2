"""Who is there of the nodes that dial one, and what that means for its rounds and its own end.

Knows nothing of networks; called by any thread.
"""

import math
import threading
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from ..errors import DeadlineError, GeoError, ProtocolError
from ..synchronization.statistics import STATISTICS
from ..wire.messages import Join
from ..wire.units import CHANGES, SITE, TREE, RoundId
from .entering import Entrances, Entry
from .gate import Gate
from .given import Given
from .holdings import Holdings
from .membership import Members
from .room import Room
from .rounds import Contribution, Event, Finished, Held, Overdue, Rounds
from .route import Router
from .rules import Rule


@dataclass(frozen=True, kw_only=True, slots=True)
class FaultRules:
    """What a node makes of peers that are silent, dead or come anew."""

    silence_s: float | None = None
    """Seconds without a byte after which a peer's connection is closed and the peer is dead; None for never,
    and no heartbeats."""

    reconnect_s: float = math.inf
    """Seconds that a lost peer has to come back, where it is not left out."""

    leaves_out: bool = False
    """Whether rounds do not wait for dead peers."""

    ends_with_process: bool = False
    """Whether the run ends with this process: another in its place would have lost what rounds came to."""

    entry: Entry = field(default_factory=Entry)
    """Whether processes may come in the place of earlier ones."""


class Presence:
    """The members of one node, its rounds as far as these have a part in them, and its door.

    Args:
        node: the node.
        children: the nodes that dial it.
        router: says whom a child brings to a round.
        rules: what is made of faults.
        rule_of: which contributions finish a round.

    Attributes:
        lock: held where rounds, members or entrances are used.
        rounds: the node's rounds.
        members: its children.
        given: what its workers have.
        entrances: its door.
        before_admission: called before a child is let in; may send it away.
        catching_up: returns the children that are behind as they have come back; under a quorum changes do
            not wait for them.
        gate: nobody is held back by it before `hold_back`.
        holdings: puts by what would take too much memory; contributions only without `hold_back`.
    """

    def __init__(
        self,
        node: str,
        children: frozenset[str],
        router: Router,
        rules: FaultRules,
        rule_of: Callable[[RoundId], Rule],
        clock: Callable[[], float],
    ) -> None:
        self.lock = threading.Lock()
        self.rounds = Rounds(rule_of, self._absent)
        self.members = Members(children, rules.silence_s)
        self.given = Given()
        self.entrances = Entrances(rules.entry, self.members, self.rounds, self.given)
        self.before_admission: Callable[[Join], None] = lambda _join: None
        self.catching_up: Callable[[], frozenset[str]] = frozenset
        self.gate = Gate(Room(), self.lock, self._not_awaited)
        self.holdings = Holdings(self.rounds, self.lock, puts_by=True)
        self._goes_on = False
        self._known: set[str] = set()
        self._lost: ProtocolError | None = None
        self._node = node
        self._children = children
        self._router = router
        self._rules = rules
        self._clock = clock

    def go_on(self, first_round: int) -> None:
        """Notes that the others have begun before this process did, and that all have come to an earlier one.

        Args:
            first_round: the first in which this node has a part again.
        """
        with self.lock:
            self._goes_on = True
            self.entrances.begun_at = first_round
            self.members.await_all(self._clock())

    def admit(self, join: Join) -> int | None:
        """See `Entrances.admit`.

        Raises:
            ProtocolError: the child goes on with what an earlier process has taken with it; see `given_up`.
        """
        self.before_admission(join)
        with self.lock:
            if self._rules.ends_with_process and join.has_begun and join.sender not in self._known:
                self._lost = ProtocolError(
                    f"{self._node} was started again, and without checkpoint_every it remembers nothing: all "
                    "must start again"
                )
                raise self._lost
            self._known.add(join.sender)
            return self.entrances.admit(join)

    def offer(self, round_id: RoundId, brought: Contribution, expected: frozenset[str], now: float) -> Event:
        """See `Rounds.offer`; called with `lock` held."""
        event = self.rounds.offer(round_id, brought, expected, now)
        if isinstance(event, Finished):
            self.gate.finished(round_id)
        elif isinstance(event, Held):
            self.gate.brought(brought.sender, round_id, brought.num_bytes)
        return event

    def hold_back(self) -> None:
        """Holds back from now on who is far ahead of the others; called before anybody comes in."""
        self.gate = Gate(Room(self._children), self.lock, self._not_awaited)
        self.holdings = Holdings(self.rounds, self.lock, puts_by=False)

    def tick(self, now: float) -> list[Finished | Overdue]:
        """See `Rounds.tick`; called with `lock` held."""
        events = list(self.rounds.tick(now))
        for event in events:
            if isinstance(event, Finished):
                self.gate.finished(event.round)
        return events

    def wait_for_room(self, peer: str, round_id: RoundId, num_bytes: int) -> float:
        """See `Register`."""
        return self.gate.wait(peer, round_id, num_bytes)

    def described(self, overdue: Overdue, present: Collection[str]) -> str:
        """Returns what is wrong with a round that waits too long, where some peers are connected."""
        missing = [
            worker
            if any(f"{worker}/".startswith(f"{peer}/") for peer in present)
            else f"{worker} (not connected)"
            for worker in overdue.missing
        ]
        return f"{self._node} waited {overdue.waited_s:.0f} s in {overdue.round} for {', '.join(missing)}"

    def lost(self, peer: str, *, was_silent: bool) -> None:
        """Notes that a peer's connection has ended, or was closed as it was silent for too long."""
        silent_s = self._rules.silence_s if was_silent and self._rules.silence_s is not None else 0.0
        with self.lock:
            self.members.lose(peer, self._clock() - silent_s)

    def left(self, peer: str) -> None:
        """Notes that a peer has done its part."""
        with self.lock:
            self.members.leave(peer)

    def all_gone(self, now: float) -> bool:
        """Tells whether every child has done its part, or is dead and not waited for."""
        with self.lock:
            gone = self.members.have_left
            if gone and self._rules.leaves_out:
                gone |= self.members.dead(now)
            return gone >= self._children

    def given_up(self, now: float) -> GeoError | None:
        """Returns why the node must end, if it must: a child, or all where they are left out, stays away."""
        with self.lock:
            if self._lost is not None:
                return self._lost
            lost_for = {child: self.members.lost_for(child, now) for child in sorted(self._children)}
        late = {child: lost_s for child, lost_s in lost_for.items() if lost_s > self._rules.reconnect_s}
        if not late or (self._rules.leaves_out and len(late) < len(self._children)):
            return None
        child, lost_s = next(iter(late.items()))
        return DeadlineError(f"{self._node} has not heard {child} for {lost_s:.0f} s")

    def _absent(self, round_id: RoundId) -> frozenset[str]:
        peers: frozenset[str] = frozenset()
        if round_id.unit.role in (self._rules.entry.changes, STATISTICS):
            scope = SITE if round_id.scope == SITE else TREE
            peers |= self.members.outside(scope, round_id.number)
        if self._rules.leaves_out:
            peers |= self.members.dead(self._clock()) | self.members.have_left
            if round_id.unit.role in (*CHANGES, STATISTICS):
                peers |= self.catching_up()
        # An earlier process may have been killed when it had answered some of a round only.
        ahead = self.rounds.ahead(round_id) if self._goes_on else frozenset()
        if not peers:
            return ahead
        route = self._router.route(round_id, self._node)
        return ahead.union(*(route.expected(peer) for peer in peers))

    def _not_awaited(self, round_id: RoundId) -> frozenset[str]:
        """Returns the children that need not come for a round to finish."""
        absent, route = self._absent(round_id), self._router.route(round_id, self._node)
        return frozenset(child for child in self._children if route.expected(child) <= absent)
