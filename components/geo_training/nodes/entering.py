"""How a process takes part that comes when the others have begun: in the place of one that died.

It is told the first round in which its name can have no part yet, asks for the weights that the others have
before that round, and goes on with them. What an earlier process of its name brought stays counted, once. A
node that has the weights answers; one that has come anew itself asks the node above it. Called under the
node's lock. Knows nothing of networks.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from ..errors import ProtocolError
from ..synchronization.base import BUFFERS, POSITION
from ..wire.messages import Array, Join
from ..wire.units import OWN, SITE, TREE, WEIGHTS, RoundId, Unit
from .given import Given, Weights, changes_scope, tensor_of
from .membership import Members
from .rounds import Rounds

FIRST = "first"
"""In the place of a scope: what all were given at first, and no round has changed."""
_FIRST = frozenset((WEIGHTS, BUFFERS, POSITION))


@dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    """Whether a process may come in the place of an earlier one, and what it is given."""

    changes: str = ""
    """Role of the rounds that change the weights; empty where no node can tell what these are."""

    refused: str = ""
    """Why a worker cannot come so; empty where it can."""


@dataclass(frozen=True, slots=True)
class Question:
    """What somebody waits for.

    Attributes:
        peer: who.
        round: names the question.
    """

    peer: str
    round: RoundId

    @property
    def about(self) -> Unit:
        """The unit of which it asks, with its own role."""
        return tensor_of(self.round.unit)


class Entrances:
    """The door of one node.

    Args:
        entry: what is allowed.
        members: the node's peers.
        rounds: the node's rounds.
        given: what its workers have.

    Attributes:
        begun_at: None where the training has not begun; else the least first round of who comes now.
    """

    def __init__(self, entry: Entry, members: Members, rounds: Rounds, given: Given) -> None:
        self.begun_at: int | None = None
        self._entry = entry
        self._members = members
        self._rounds = rounds
        self._given = given
        self._first_rounds: dict[str, int] = {}
        self._questions: list[Question] = []

    def admit(self, join: Join) -> int | None:
        """Lets a peer in.

        Returns:
            The first round of one that comes after the others; None for others.

        Raises:
            ProtocolError: it cannot come anew, or a later process has taken its place.
        """
        name = join.sender
        if self._members.is_new(name, join.incarnation):
            self._first_rounds.pop(name, None)
            self._questions = [each for each in self._questions if each.peer != name]
            if self.begun_at is not None and not join.has_begun:
                self._hold_allowed(name)
                self._first_rounds[name] = max(self.begun_at, self._next_number(name))
        self._members.join(name, join.incarnation)
        first = self._first_rounds.get(name)
        if first is not None:
            self._members.enter(name, TREE, first)
            self._members.enter(name, SITE, self._rounds.next_number(SITE, [self._entry.changes], name))
        return first

    def begin(self, peer: str, round_id: RoundId) -> None:
        """Notes that a peer takes part in a round: if it came after the others, it has caught up."""
        if round_id.unit.role == self._entry.changes:
            self._first_rounds.pop(peer, None)

    def ask(self, question: Question) -> list[RoundId]:
        """Takes a question, which `answers` answers at once or later.

        Returns:
            Rounds before the peer's first that nobody may bring, as its earlier process died between two of
            its units: it is to take part in them with nothing.
        """
        if question not in self._questions:
            self._questions.append(question)
        first, held = self._first_rounds.get(question.peer), self._weights(question)
        if question.about.role != WEIGHTS or first is None or held is None:
            return []
        tensor, scope = tensor_of(question.about), self._scope(question.peer)
        unit = Unit(f"{self._entry.changes} {tensor.key}".rstrip(), tensor.offset, tensor.count)
        return [RoundId(scope, unit, number) for number in range(held.rounds, first)]

    def is_asked(self, question: Question) -> bool:
        """Tells whether a question waits for its answer."""
        return question in self._questions

    def unknown(self, question: Question) -> bool:
        """Tells whether the node above must be asked, as nothing of it is known here."""
        return self._weights(question) is None

    def learn(self, about: Unit, values: Array, rounds: int, peer: str) -> None:
        """Takes over what the node above says."""
        if about.role == WEIGHTS:
            self._given.begin(tensor_of(about), values, rounds, self._scope(peer))
        else:
            self._given.begin(about, values, scope=FIRST)

    def follows(self, round_id: RoundId) -> bool:
        """Tells whether a round's result is to be noted."""
        if round_id.unit.role in _FIRST:
            return round_id.scope == TREE
        return round_id.unit.role == self._entry.changes and changes_scope(round_id.scope)

    def note(self, round_id: RoundId, values: Array | None) -> None:
        """Takes over the result of a round that it follows, as the peers are answered it."""
        if round_id.unit.role not in _FIRST:
            self._given.add(round_id, values)
        elif values is not None:
            self.begun_at = self.begun_at or 0
            if self._entry.changes:
                self.learn(round_id.unit, values, 0, "")

    def answers(self) -> Iterator[tuple[Question, Weights]]:
        """Yields the questions that can be answered now, once each."""
        for question in list(self._questions):
            weights = self._weights(question)
            least = self._first_rounds.get(question.peer, 0) if question.about.role == WEIGHTS else 0
            if weights is not None and weights.rounds >= least:
                self._questions.remove(question)
                if least:
                    self._members.enter(question.peer, TREE, weights.rounds)
                yield question, weights

    def _hold_allowed(self, name: str) -> None:
        if self._entry.refused and "/" in name:
            raise ProtocolError(f"{name} comes after the others have begun: {self._entry.refused}")
        if self._members.have_left:
            raise ProtocolError(f"{name} comes when others have ended")

    def _next_number(self, name: str) -> int:
        roles = [self._entry.changes]
        return max(self._rounds.next_number(scope, roles, name) for scope in (TREE, self._own(name)))

    def _weights(self, question: Question) -> Weights | None:
        about = question.about
        if about.role == WEIGHTS:
            return self._given.weights(self._scope(question.peer), tensor_of(about))
        return self._given.weights(FIRST, about)

    def _scope(self, peer: str) -> str:
        """Returns the scope of the rounds that change a peer's weights: its site's own, if it has any."""
        own = self._own(peer)
        return own if self._given.has(own) else TREE

    @staticmethod
    def _own(peer: str) -> str:
        return f"{OWN}{peer.partition('/')[0]}"
