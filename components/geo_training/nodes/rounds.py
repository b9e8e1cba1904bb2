"""Which contributions finish a round at one node: a pure state machine.

Takes time as an argument and never looks into a value. Knows nothing of networks, reductions or threads.

Laws, whatever order, repeats or losses the contributions come in: a round finishes at most once; a
contribution that was accepted is in exactly one finished round, or still held, itself or in a larger one that
it was merged into on another way.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from ..errors import ProtocolError, UsageError
from ..wire.units import RoundId, Unit
from .results import Results
from .rules import Rule

REMEMBERED = 64
"""Numbers of a unit, back from the newest finished, in which a repeat is told from a late contribution."""


@dataclass(frozen=True, slots=True)
class Contribution:
    """What one sender brings to a round.

    Attributes:
        sender: the peer that sent it.
        covers: the workers whose values are merged in it.
        weight: number of samples behind it.
        wait_s: seconds that its round may wait for the others, from when it came.
        value: anything; opaque here.
        idle: whether it brings nothing, so that a round of idle ones alone means that all have ended.
        speaks_for: workers that come to the round through the sender only, so that those it does not cover
            are not in the round; empty for those that it covers.
        num_bytes: of memory that it takes while it waits.
    """

    sender: str
    covers: frozenset[str]
    weight: float
    wait_s: float
    value: Any
    idle: bool = False
    speaks_for: frozenset[str] = frozenset()
    num_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Held:
    """The contribution is kept; its round is not finished."""


@dataclass(frozen=True, slots=True)
class Repeated:
    """The contribution was counted before. `result` is what `settle` was given, None while there is none.

    Attributes:
        result: as above.
        is_late: whether it was not counted before, but came too late, and counts in the unit's next round.
    """

    result: Any
    is_late: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True)
class Finished:
    """The round is finished by these contributions, sorted by sender."""

    round: RoundId
    contributions: tuple[Contribution, ...]

    @property
    def weight(self) -> float:
        """Samples of all contributions."""
        return sum(contribution.weight for contribution in self.contributions)

    @property
    def wait_s(self) -> float:
        """Longest wait that one of the contributions allows."""
        return max(contribution.wait_s for contribution in self.contributions)

    @property
    def covers(self) -> tuple[str, ...]:
        """The workers in the round, sorted."""
        return tuple(sorted({worker for c in self.contributions for worker in c.covers}))


@dataclass(frozen=True, slots=True)
class Overdue:
    """A round that waited longer than it may."""

    round: RoundId
    missing: tuple[str, ...]
    waited_s: float


Event: TypeAlias = Held | Repeated | Finished


@dataclass(slots=True)
class _Open:
    expected: frozenset[str]
    since: float
    until: float
    contributions: list[Contribution] = field(default_factory=list)
    senders: set[str] = field(default_factory=set)

    @property
    def covered(self) -> frozenset[str]:
        return frozenset().union(*(c.covers for c in self.contributions))

    @property
    def idle(self) -> frozenset[str]:
        return frozenset().union(*(c.covers for c in self.contributions if c.idle))

    @property
    def unreachable(self) -> frozenset[str]:
        return frozenset().union(*(c.speaks_for for c in self.contributions)) - self.covered

    def has(self, sender: str) -> bool:
        return sender in self.senders


@dataclass(slots=True)
class Done:
    """A round that is finished, as it is remembered.

    Attributes:
        expected: workers that the route leads through this node.
        covered: workers that are counted in it, or came too late and count in a next one.
        waiting: who is told its result.
        settled: whether it has its result.
        result: what `settle` was given, while it is kept.
    """

    expected: frozenset[str]
    covered: set[str]
    waiting: set[str]
    settled: bool = False
    result: Any = None


@dataclass(slots=True)
class _Line:
    """The rounds of one unit in one scope."""

    open: dict[int, _Open] = field(default_factory=dict)
    done: dict[int, Done] = field(default_factory=dict)
    carried: list[Contribution] = field(default_factory=list)

    def newest_done(self) -> int:
        return max(self.done, default=-1)

    def forget_results(self) -> list[int]:
        """Forgets results that all have: who is in the round, and in a later one of the unit."""
        ahead: set[str] = set()
        forgotten = []
        for number in sorted(self.done, reverse=True):
            done = self.done[number]
            if ahead & done.covered >= done.expected:
                done.result = None
                forgotten.append(number)
            ahead |= done.covered
        return forgotten


class Rounds:
    """The rounds of one node.

    Args:
        rule_of: which contributions finish a round.
        absent: the workers that are not waited for in a round, asked whenever one may be finished.

    Attributes:
        held_bytes: of contributions that wait, in open rounds or for a next one.
    """

    def __init__(
        self,
        rule_of: Callable[[RoundId], Rule],
        absent: Callable[[RoundId], frozenset[str]] = lambda _round: frozenset(),
    ) -> None:
        self._rule_of = rule_of
        self._absent = absent
        self.held_bytes = 0
        self._lines: dict[tuple[str, Unit], _Line] = defaultdict(_Line)
        self._results = Results()

    def offer(
        self, round_id: RoundId, contribution: Contribution, expected: frozenset[str], now: float
    ) -> Event:
        """Takes one contribution.

        Args:
            round_id: the round that it is for.
            contribution: what came.
            expected: the workers whose contributions the route leads through this node.
            now: seconds on any clock that never goes back.

        Returns:
            `Held`, `Repeated`, or `Finished` when it was the last one needed.

        Raises:
            ProtocolError: it covers workers that are not expected or partly counted, or it is too old to
                judge.
        """
        line = self._lines[round_id.scope, round_id.unit]
        if not contribution.covers or not contribution.covers <= expected:
            raise ProtocolError(
                f"{round_id}: {contribution.sender} brings workers that are not expected here"
            )
        if round_id.number <= line.newest_done() - REMEMBERED:
            raise ProtocolError(f"{round_id} is {REMEMBERED} rounds or more behind")
        if (done := line.done.get(round_id.number)) is not None:
            return self._late(round_id, line, done, contribution)
        current = line.open.setdefault(round_id.number, _Open(expected, now, now))
        if current.has(contribution.sender) or contribution.covers <= current.covered:
            current.senders.add(contribution.sender)
            return Repeated(None)
        apart = [c for c in current.contributions if not c.covers <= contribution.covers]
        _counted(round_id, contribution, frozenset().union(*(c.covers for c in apart)))
        self.held_bytes += contribution.num_bytes + _bytes_of(apart) - _bytes_of(current.contributions)
        current.contributions = [*apart, contribution]
        current.senders.add(contribution.sender)
        current.until = max(current.until, now + contribution.wait_s)
        return self._finish(round_id, line, now) or Held()

    def settle(self, round_id: RoundId, result: Any, num_bytes: int = 0) -> tuple[str, ...]:
        """Stores the result of a finished round, for peers that ask again.

        Args:
            round_id: the round.
            result: anything; opaque here.
            num_bytes: of memory that it takes.

        Returns:
            The senders that wait for it, sorted.

        Raises:
            UsageError: the round was not finished here, or has its result.
        """
        line = self._lines[round_id.scope, round_id.unit]
        done = line.done.get(round_id.number)
        if done is None or done.settled:
            raise UsageError(f"{round_id} is not waiting for a result")
        done.settled, done.result = True, result
        self._results.add(round_id, num_bytes)
        self._forget(round_id, line)
        return tuple(sorted(done.waiting))

    def oldest_results(self, most_bytes: float) -> list[tuple[RoundId, Any]]:
        """Returns the oldest results, as many as are beyond some bytes of all that are in memory."""
        return [(oldest, self.done_of(oldest).result) for oldest in self._results.beyond(most_bytes)]

    def put_by(self, round_id: RoundId, result: Any, instead: Any) -> None:
        """Keeps another form of a result, which takes no memory, unless nobody needs it any more."""
        done = self._lines[round_id.scope, round_id.unit].done.get(round_id.number)
        if done is not None and done.result is result:
            done.result = instead
            self._results.drop(round_id)

    def ask(self, round_id: RoundId, sender: str, workers: frozenset[str] = frozenset()) -> Event | None:
        """Looks up what a sender asks for.

        Args:
            round_id: the round.
            sender: who asks.
            workers: those whose contributions the sender brings, which may have come another way.

        Returns:
            `Repeated` with the result; `Held` when the sender is counted and the result will come; None when
            nothing of the sender is counted.
        """
        line = self._lines[round_id.scope, round_id.unit]
        done, current = line.done.get(round_id.number), line.open.get(round_id.number)
        if done is not None and workers and workers <= done.covered:
            done.waiting.add(sender)
        if done is not None and sender in done.waiting:
            return Repeated(done.result) if done.settled else Held()
        if current is not None and workers and workers <= current.covered:
            current.senders.add(sender)
        if current is not None and current.has(sender):
            return Held()
        return None

    def next_number(self, scope: str, roles: Collection[str], sender: str) -> int:
        """Returns the first number of a scope's units of some roles in which a sender can have no part yet.

        All before it are finished here, or hold a contribution of the sender.
        """
        numbers = [
            number
            for (of_scope, unit), line in self._lines.items()
            if of_scope == scope and unit.role in roles
            for number in (
                line.newest_done(),
                *(number for number, current in line.open.items() if current.has(sender)),
            )
        ]
        return 1 + max(numbers, default=-1)

    def carried(self) -> dict[tuple[str, Unit], list[Contribution]]:
        """Returns what came too late and counts in the next round, by scope and unit."""
        return {key: list(line.carried) for key, line in self._lines.items() if line.carried}

    def carry(self, scope: str, unit: Unit, contribution: Contribution) -> None:
        """Lets a contribution count in the unit's next round to finish; called before any is offered."""
        self._lines[scope, unit].carried.append(contribution)
        self.held_bytes += contribution.num_bytes

    def ahead(self, round_id: RoundId) -> frozenset[str]:
        """Returns the workers that are in later rounds of the unit, and so have the result of this one."""
        line = self._lines[round_id.scope, round_id.unit]
        covered = [current.covered for number, current in line.open.items() if number > round_id.number]
        covered += [frozenset(done.covered) for number, done in line.done.items() if number > round_id.number]
        return frozenset().union(*covered)

    def done(self) -> list[tuple[RoundId, Done]]:
        """Returns the finished rounds that are remembered."""
        return [
            (RoundId(scope, unit, number), done)
            for (scope, unit), line in self._lines.items()
            for number, done in line.done.items()
        ]

    def done_of(self, round_id: RoundId) -> Done:
        """Returns a finished round that is remembered."""
        return self._lines[round_id.scope, round_id.unit].done[round_id.number]

    def redo(self, round_id: RoundId, done: Done, num_bytes: int = 0) -> None:
        """Remembers a finished round of this node's earlier process, and what it carried over as used up.

        Args:
            round_id: the round.
            done: what is remembered of it.
            num_bytes: of its result.
        """
        line = self._lines[round_id.scope, round_id.unit]
        self.held_bytes -= _bytes_of(line.carried)
        line.done[round_id.number], line.carried = done, []
        if done.result is not None:
            self._results.add(round_id, num_bytes)

    def tick(self, now: float) -> Iterator[Finished | Overdue]:
        """Yields the rounds that time has finished, or that wait for too long."""
        for (scope, unit), line in list(self._lines.items()):
            for number, current in list(line.open.items()):
                round_id = RoundId(scope, unit, number)
                if (event := self._finish(round_id, line, now)) is not None:
                    yield event
                elif now > current.until:
                    missing = tuple(sorted(current.expected - current.covered))
                    yield Overdue(round_id, missing, now - current.since)

    def _finish(self, round_id: RoundId, line: _Line, now: float) -> Finished | None:
        current = line.open[round_id.number]
        expected = current.expected - self._absent(round_id) - current.unreachable
        rule = self._rule_of(round_id)
        if not rule.finished(current.covered, current.idle, expected, now - current.since):
            return None
        del line.open[round_id.number]
        contributions = sorted([*current.contributions, *line.carried], key=lambda c: c.sender)
        line.carried = []
        self.held_bytes -= _bytes_of(contributions)
        line.done[round_id.number] = Done(current.expected, set(current.covered), current.senders)
        for number in [n for n in line.done if n <= line.newest_done() - REMEMBERED]:
            del line.done[number]
            self._results.drop(RoundId(round_id.scope, round_id.unit, number))
        self._forget(round_id, line)
        return Finished(round_id, tuple(contributions))

    def _forget(self, round_id: RoundId, line: _Line) -> None:
        for number in line.forget_results():
            self._results.drop(RoundId(round_id.scope, round_id.unit, number))

    def _late(self, round_id: RoundId, line: _Line, done: Done, contribution: Contribution) -> Event:
        is_new = contribution.sender not in done.waiting
        is_late = is_new and not _counted(round_id, contribution, frozenset(done.covered))
        if is_late:
            line.carried.append(contribution)
            self.held_bytes += contribution.num_bytes
            done.covered |= contribution.covers
        done.waiting.add(contribution.sender)
        return Repeated(done.result, is_late)


def _counted(round_id: RoundId, contribution: Contribution, covered: frozenset[str]) -> bool:
    if contribution.covers <= covered:
        return True
    if contribution.covers & covered:
        raise ProtocolError(f"{round_id}: {contribution.sender} brings workers that are partly counted")
    return False


def _bytes_of(contributions: Iterable[Contribution]) -> int:
    return sum(contribution.num_bytes for contribution in contributions)
