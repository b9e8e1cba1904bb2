"""Questions of processes that come when the others have begun: taken, handed on and answered by one node.

See `entering`. Knows nothing of connections.
"""

from typing import Protocol

from ..compression import decode
from ..compression.dense import Dense
from ..errors import GeoError, ProtocolError
from ..links.client import Pending, Terms
from ..relaying import Uplink
from ..wire.messages import Answer, Message, Missing, Payload, Push
from ..wire.units import RoundId, Unit
from .entering import Question
from .presence import Presence


class Host(Protocol):
    """The node whose doorway it is; called in any thread, and not under the node's lock."""

    def send(self, peer: str, message: Message) -> None:
        """Sends a message to a child."""

    def bring_nothing(self, peer: str, round_id: RoundId, wait_s: float) -> None:
        """Takes part in a round for a child, without values."""

    def above(self, round_id: RoundId) -> Uplink | None:
        """Returns the way to the node to ask next; None where there is none."""

    def failed(self, error: GeoError) -> None:
        """Gives all up."""


class Doorway:
    """The questions of one node's children. Any thread may call it.

    Args:
        presence: who is there.
        host: the node.
    """

    def __init__(self, presence: Presence, host: Host) -> None:
        self._presence = presence
        self._host = host
        self._handed_on: set[RoundId] = set()

    def ask(self, peer: str, push: Push) -> None:
        """Takes a question.

        Raises:
            ProtocolError: nobody knows the answer.
        """
        round_id = push.round
        question, entrances, above = (
            Question(peer, round_id),
            self._presence.entrances,
            self._host.above(round_id),
        )
        with self._presence.lock:
            gaps = entrances.ask(question)
            hand_on = entrances.unknown(question) and round_id not in self._handed_on
            if hand_on and above is not None:
                self._handed_on.add(round_id)
        for gap in gaps:
            self._host.bring_nothing(peer, gap, push.wait_s)
        if hand_on:
            if above is None:
                raise ProtocolError(
                    f"nothing is known here of {question.about.key!r}: it is of another model"
                )
            terms = Terms(reduction="sum", covers=(peer,))
            above.push(round_id, None, terms, lambda pending: self._learn(peer, pending))
        self._answer()

    def ask_again(self, peer: str, round_id: RoundId) -> None:
        """Takes a question whether a question is still known."""
        with self._presence.lock:
            is_asked = self._presence.entrances.is_asked(Question(peer, round_id))
        if not is_asked:
            self._host.send(peer, Missing(round_id))

    def settled(self, round_id: RoundId, payload: Payload) -> None:
        """Takes over the result of a round, as the children are answered it."""
        entrances = self._presence.entrances
        if not entrances.follows(round_id):
            return
        values = decode(round_id.unit, payload)
        with self._presence.lock:
            entrances.note(round_id, values)
        self._answer()

    def _learn(self, peer: str, pending: Pending) -> None:
        if pending.result is None or pending.result.values is None:
            self._host.failed(pending.error or ProtocolError(f"no answer to {pending.push.round}"))
            return
        round_id, result = pending.push.round, pending.result
        with self._presence.lock:
            self._handed_on.discard(round_id)
            about = Question(peer, round_id).about
            self._presence.entrances.learn(about, pending.result.values, int(result.weight), peer)
        self._answer()

    def _answer(self) -> None:
        with self._presence.lock:
            ready = list(self._presence.entrances.answers())
        for question, weights in ready:
            unit: Unit = question.round.unit
            payload = Dense().encode(unit, weights.values)
            self._host.send(question.peer, Answer(question.round, float(weights.rounds), payload))
