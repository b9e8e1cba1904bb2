"""Which processes of a job are started again when one of them is killed: a pure state machine.

Processes that depend on each other are a unit: one is killed, so all of them end and are started again. A
unit may lie within another: who is killed takes with it the smallest that it is of. Takes time as an
argument. Knows nothing of what the processes do, nor of how they are killed and started::

    running --one killed--> failing --cause known--> ending --all have ended--> running again
                               |
                               +--no signal, too often, or one is done--> the job fails
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Literal, Protocol

from .plan import Role
from .verdict import BadEnd, root_cause

MOST = 2
"""How often a unit is started again."""
_KILLED = "killed by "


@dataclass(frozen=True, slots=True)
class Unit:
    """Processes that end, and are started again, together."""

    name: str
    """Shown in messages, such as `site-0`."""
    replicas: frozenset[str]
    """Names of its processes."""
    shared_memory_prefixes: tuple[str, ...] = ()
    """Names in /dev/shm that begin so are removed when all have ended."""
    others_s: float = 0.5
    """Seconds in which the cause of an end that another's end would explain may still come in."""


class Restarting(Protocol):
    """Who plans units anew; called by the supervisor's thread, between two looks at its processes."""

    @property
    def units(self) -> tuple[Unit, ...]:
        """The units, disjoint or one within another; the same at all times."""

    def wanted(self, unit: Unit) -> int:
        """Returns how often a unit is to have been started again by now, as others say; called often."""

    def ending(self, unit: Unit, number: int, cause: str) -> None:
        """Called when a unit is being ended, to be started again for the `number`-th time."""

    def again(self, unit: Unit, number: int) -> tuple[Role, ...]:
        """Returns the unit's processes anew, of the same names; called when all earlier ones have ended."""


@dataclass(frozen=True, slots=True)
class Step:
    """What is to be done next.

    Attributes:
        what: `end` a unit's processes that still run, `start` them again, or let the job `fail`.
        unit: the unit.
        number: how often it is started again with this.
        ends: why.
    """

    what: Literal["end", "start", "fail"]
    unit: Unit
    number: int
    ends: tuple[BadEnd, ...] = ()

    @property
    def cause(self) -> BadEnd:
        """The end that explains the others."""
        return root_cause(self.ends)


@dataclass(slots=True)
class _State:
    unit: Unit
    number: int = 0
    running: set[str] = field(default_factory=set)
    ends: list[BadEnd] = field(default_factory=list)
    until: float = 0.0
    is_ending: bool = False
    is_done: bool = False


class Restarts:
    """The units of one job.

    Args:
        units: disjoint, or one within another.
        finishing: the processes that end by themselves: a unit of which one has done so cannot begin again.
        most: how often a unit is started again.
    """

    def __init__(self, units: Iterable[Unit], finishing: frozenset[str], most: int = MOST) -> None:
        by_size = sorted(units, key=lambda unit: len(unit.replicas), reverse=True)
        self._units = [_State(unit, running=set(unit.replicas)) for unit in by_size]
        self._finishing = finishing
        self._most = most

    def ended(self, name: str, end: BadEnd | None, now: float) -> bool:
        """Takes the end of a process.

        Args:
            name: the process.
            end: how it ended; None when well.
            now: seconds on a clock that never goes back.

        Returns:
            Whether it is of a unit, of which `steps` says what becomes.
        """
        states = [state for state in self._units if name in state.unit.replicas]
        for state in states:
            state.running.discard(name)
        if any(state.is_ending for state in states):
            return True
        if end is None:
            for state in states:
                state.is_done |= name in self._finishing
        elif states:
            smallest = states[-1]
            smallest.until = smallest.until if smallest.ends else now + smallest.unit.others_s
            smallest.ends.append(end)
        return bool(states)

    def want(self, unit: Unit, number: int) -> None:
        """Notes that others of a larger unit have ended, to be started again for the `number`-th time."""
        state = self._of(unit)
        if number > state.number and not state.is_ending:
            state.ends.append(BadEnd(unit.name, f"{_KILLED}the restart of its site"))
            state.until, state.number = 0.0, number - 1

    def steps(self, now: float) -> list[Step]:
        """Returns what is to be done, each step once."""
        return [step for state in self._units if (step := self._step(state, now)) is not None]

    @property
    def failing(self) -> list[BadEnd]:
        """Ends that nothing has been made of yet."""
        return [end for state in self._units if not state.is_ending for end in state.ends]

    def _of(self, unit: Unit) -> _State:
        return next(each for each in self._units if each.unit == unit)

    def _step(self, state: _State, now: float) -> Step | None:
        if not state.ends or any(outer.ends for outer in self._around(state)):
            return None
        if state.is_ending:
            return None if state.running else self._begin(state)
        if now < state.until and all(end.is_secondary() for end in state.ends):
            return None
        step = Step("end", state.unit, state.number + 1, tuple(state.ends))
        if state.is_done or _KILLED not in step.cause.cause or state.number >= self._most:
            state.ends = []
            return self._failed(step)
        state.is_ending = True
        for inner in self._within(state):
            inner.ends, inner.is_ending = [], False
        return step

    def _begin(self, state: _State) -> Step:
        state.number += 1
        step = Step("start", state.unit, state.number, tuple(state.ends))
        state.ends, state.is_ending = [], False
        for each in (state, *self._around(state), *self._within(state)):
            each.running |= state.unit.replicas & each.unit.replicas
        return step

    def _around(self, state: _State) -> list[_State]:
        return [each for each in self._units if each.unit.replicas > state.unit.replicas]

    def _within(self, state: _State) -> list[_State]:
        return [each for each in self._units if each.unit.replicas < state.unit.replicas]

    def _failed(self, step: Step) -> Step:
        before = step.number - 1
        if not before:
            return replace(step, what="fail")
        told = f"; {step.unit.name} had been started again {before} of at most {self._most} times"
        ends = tuple(
            BadEnd(end.name, f"{end.cause}{told}") if end == step.cause else end for end in step.ends
        )
        return replace(step, what="fail", ends=ends)
