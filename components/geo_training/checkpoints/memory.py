"""What a root that keeps checkpoints by itself remembers when it is killed, and how it goes on.

Where its sites live on, it goes on where it was killed: from its last checkpoint and the rounds since
(`journal`), made again in their order. What sites had sent to rounds that were not finished they send again,
as after any lost connection. Where all were started again, all go on from the checkpoint. Which of the two it
is, the first that come back say: those that live on try again every second, so they are first.
"""

import threading
from collections.abc import Callable
from typing import Protocol

from ..._launch import progress
from ..errors import LinkClosedError
from ..synchronization.node import Root
from ..wire.messages import Join
from ..wire.units import RoundId
from .journal import Journal, Record
from .node_checkpoints import Keeper
from .state import State

REGROUP_S = 2.5
"""Seconds in which those that live on come back before those that are started again are let in."""


class Node(Protocol):
    """The root itself."""

    def memory_state(self) -> State:
        """Returns what it has beside its policy."""

    def load_memory(self, state: State) -> None:
        """Takes that over; it may be empty."""

    def redo(self, record: Record) -> None:
        """Makes of a round what it made of it before."""

    def begin_again(self) -> None:
        """Notes that nothing counts of a child that does not begin."""


class Memory:
    """The memory of one root. Any thread may call it.

    Args:
        keeper: of its checkpoints.
        journal: what it has merged since.
        policy: the root's.
        clock: seconds on a clock that never goes back.

    Attributes:
        order: held where the root merges, writes that down and takes it over: in one order.
    """

    def __init__(self, keeper: Keeper, journal: Journal, policy: Root, clock: Callable[[], float]) -> None:
        self.order = threading.RLock()
        self._keeper = keeper
        self._journal = journal
        self._policy = policy
        self._clock = clock
        self._since = clock()
        self._last = keeper.last()
        self._is_decided = not self._last and not journal.exists(0)
        if self._is_decided:
            journal.begin(0)

    def decide(self, join: Join, node: Node) -> None:
        """Decides how the root goes on, by who comes first; called before a child is let in.

        Raises:
            LinkClosedError: it is to try again a little later.
        """
        with self.order:
            if self._is_decided:
                return
            if join.has_begun:
                self._go_on(node)
            elif self._clock() - self._since < REGROUP_S:
                raise LinkClosedError("those that live on come first")
            else:
                self._begin_again(node)
            self._is_decided = True

    def before(self, round_id: RoundId, node: Node) -> None:
        """Keeps a checkpoint where one is due; called before a contribution to a round counts."""
        if self._keeper.is_due(round_id):
            with self.order:
                number = self._keeper.before(round_id, node.memory_state)
                if number is not None:
                    self._journal.begin(number)

    def note(self, record: Record) -> None:
        """Writes down what counts from now on; called with `order` held."""
        self._journal.append(record)

    def forget(self) -> None:
        """Removes all, once nobody needs it."""
        self._journal.forget()
        self._keeper.forget()

    def _go_on(self, node: Node) -> None:
        again = self._journal.is_of_all_again(self._last)
        if self._last:
            own = self._keeper.restore(self._last)
            if again:
                self._policy.begin_again(self._last)
            else:
                self._policy.rounds = self._keeper.go_on(self._last, own)
                node.load_memory(own.part("lasting"))
        number = 0
        for record in self._journal.records(self._last):
            node.redo(record)
            number += 1
        node.load_memory(State())
        self._journal.begin(self._last, of_all_again=again)
        progress(f"goes on where it was killed: after round {self._last}, and {number} merged units since")

    def _begin_again(self, node: Node) -> None:
        self._journal.forget()
        if self._last:
            self._keeper.restore(self._last)
            self._policy.begin_again(self._last)
            node.begin_again()
            progress(f"goes on after round {self._last}; all sites and workers must start again too")
        self._journal.begin(self._last, of_all_again=self._last > 0)
