"""The end of a link that dials: push, pull, wait, retry. Used by workers, and by an aggregator to its parent.

A push asks for the round's result too (one round trip). What is lost on the way is asked for again by `Pull`,
which the parent answers with the result or with `Missing`; only then the values travel a second time. Knows
nothing of connections (`link`), sites or frameworks.
"""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ..compression import Compressor, decode
from ..errors import DeadlineError, GeoError, ProtocolError, RefusedError
from ..metrics import SEND, UNOBSERVED, WAIT, Observer, Span
from ..transport.base import Connection, Traffic
from ..transport.outbox import BEFORE_ALL
from ..wire.block_messages import Blocks, Received
from ..wire.messages import (
    NOTHING,
    Answer,
    Array,
    Message,
    Missing,
    Payload,
    Pull,
    Push,
    Refusal,
    TrafficQuery,
    TrafficReport,
)
from ..wire.terms import Result as Result
from ..wire.terms import Terms as Terms
from ..wire.units import CHANGES, RoundId, Unit
from .answer_blocks import block_bytes
from .carrier import Carrier, Whole
from .client_settings import ClientSettings as ClientSettings
from .heartbeats import Silence
from .link import Ends, Link
from .telling import Patience

_PATIENCE = 2.0


@dataclass(slots=True, eq=False)
class Pending:
    """A push whose result has not come; `result` or `error` is set once it has, and when."""

    push: Push
    started: float
    asked: float
    then: Callable[["Pending"], None] | None
    result: Result | None = None
    error: GeoError | None = None
    ended: float = 0.0
    finished: bool = field(default=False)


class Client:
    """A node's end of the link to the node that it dials.

    Any thread may call it. One thread of its own reads.

    Args:
        settings: who it is and how long it waits.
        dial: makes a connection to the peer, trying once; may raise `LinkError`.
        compressor: encodes what goes up on this link.
        clock: seconds on a clock that never goes back.
        observer: is told what happens.
        carrier: how pushes travel; None for whole ones.

    Raises:
        LinkError: the peer cannot be reached within `reconnect_s`.
        RefusedError: the peer wants no part of us.
    """

    def __init__(
        self,
        settings: ClientSettings,
        dial: Callable[[], Connection],
        compressor: Compressor,
        clock: Callable[[], float] = time.monotonic,
        observer: Observer = UNOBSERVED,
        carrier: Carrier | None = None,
    ) -> None:
        self.observer = observer
        self._settings = settings
        self._carrier = carrier or Whole(compressor)
        self._clock = clock
        self._changed = threading.Condition()
        self._pending: dict[RoundId, Pending] = {}
        self._numbers: dict[tuple[str, Unit], int] = {}
        self._report: TrafficReport | None = None
        self._error: GeoError | None = None
        self._closing = False
        self._first: Callable[[Message], bool] = lambda _: False
        self._back: Callable[[], None] = lambda: None
        ends = Ends(
            name=settings.name,
            peer=settings.peer,
            run=settings.run,
            reconnect_s=settings.reconnect_s,
            observer=observer,
            silence=Silence(settings.silence_s),
            has_begun=settings.has_begun,
        )
        self._link = Link(ends, dial, clock)
        self._carrier.joined(self._link)
        self._link.read(self)

    @property
    def traffic(self) -> Traffic:
        """Bytes of this link so far, as this end counts them."""
        total = self._link.traffic
        total.add(self._carrier.traffic)
        return total

    def now(self) -> float:
        """Returns the seconds on the client's clock."""
        return self._clock()

    @property
    def first_round(self) -> int | None:
        """The round to begin with where the others have begun before; None at the start of all."""
        return self._link.first_round

    @property
    def numbers(self) -> dict[tuple[str, Unit], int]:
        """The last number so far of each unit's rounds, by scope and unit."""
        with self._changed:
            return dict(self._numbers)

    def skip(self, scope: str, unit: Unit, number: int) -> None:
        """Lets the next round of a unit be the `number`-th: those before it are others'."""
        with self._changed:
            self._numbers[scope, unit] = number - 1

    def links(self) -> dict[str, Traffic]:
        """Returns the bytes of this link so far, by the peer's name."""
        return {self._settings.peer: self.traffic}

    def listen(self, first: Callable[[Message], bool], back: Callable[[], None]) -> None:
        """Tells more of what comes, from now on, in the client's thread.

        Args:
            first: called with every message; tells whether it took it.
            back: called when the connection was lost and made anew.
        """
        self._first, self._back = first, back

    def send(self, message: Message, priority: int) -> None:
        """Sends a message in its turn, such as a contribution that was to go another way."""
        self._link.send(message, priority)

    def next_round(self, scope: str, unit: Unit) -> RoundId:
        """Returns the next round of a unit; workers that make the same calls get the same rounds."""
        with self._changed:
            number = self._numbers.get((scope, unit), -1) + 1
            self._numbers[scope, unit] = number
        return RoundId(scope, unit, number)

    def push(
        self,
        round_id: RoundId,
        values: Array | None,
        terms: Terms,
        then: Callable[[Pending], None] | None = None,
        way: Callable[[Push], bool] | None = None,
    ) -> Pending:
        """Sends a contribution and asks for the round's result.

        Args:
            round_id: the round.
            values: one-dimensional; None takes part without values. They must not change until there is a
                result.
            terms: how they are merged.
            then: called with the pending push once it has a result or an error, in the client's thread.
            way: another way than this link; tells whether it sends the contribution.

        Returns:
            What `wait` takes.

        Raises:
            GeoError: the link was given up before.
        """
        began = self._clock()
        payload = NOTHING if values is None else self._carrier.payload(round_id, values, terms.weight)
        push = Push(
            sender=self._settings.name,
            round=round_id,
            reduction=terms.reduction,
            weight=float(terms.weight),
            wait_s=self._settings.round_timeout_s if terms.wait_s is None else terms.wait_s,
            covers=terms.covers or (self._settings.name,),
            payload=payload,
            priority=terms.priority,
        )
        if round_id.unit.role in CHANGES:
            self._link.has_begun = True
        now = self._clock()
        pending = Pending(push, now, now, then)
        with self._changed:
            self._raise_error()
            self._pending[round_id] = pending
        self.observer.pushed(self._settings.name, round_id, payload, self._carrier.block_bytes(round_id))
        if way is None or not way(push):
            self._carrier.send(push)
        self.observer.spent(Span(SEND, began, self._clock()))
        return pending

    def wait(self, pending: Pending) -> Result:
        """Waits for the result of a push.

        Raises:
            RefusedError: the peer gave the run up; the message is its reason.
            LinkError: the peer was lost, or no result came in time.
        """
        self.wait_any([[pending]])
        assert pending.result is not None
        return pending.result

    def wait_any(self, groups: Sequence[Sequence[Pending]]) -> None:
        """Waits until all pushes of one of some groups have a result.

        Raises:
            RefusedError: the peer gave the run up; the message is its reason.
            LinkError: the peer was lost, or no result came in time.
        """

        def finished() -> bool:
            return any(all(one.finished for one in group) for group in groups)

        began = self._clock()
        patience = Patience(began)
        while not finished():
            left_s = patience.left(self._clock())
            with self._changed:
                self._changed.wait_for(finished, min(self._settings.retry_s, left_s))
            if not finished():
                every = (one for group in groups for one in group)
                first = next((one for one in every if not one.finished), groups[0][0]).push.round
                patience.check(self._clock(), lambda: f"{self._settings.peer} in {first}")  # noqa: B023
                self.check()
        self.observer.spent(Span(WAIT, began, self._clock()))
        for one in (one for group in groups for one in group):
            if one.error is not None:
                raise one.error

    def pull(self, pending: Pending) -> None:
        """Asks again for the result of a push."""
        pending.asked = self._clock()
        self._link.send(Pull(pending.push.round), pending.push.priority)

    def check(self) -> None:
        """Asks again, or gives up, where a result takes too long; called from time to time."""
        now = self._clock()
        with self._changed:
            waiting = list(self._pending.values())
        for pending in waiting:
            if now - pending.started > _PATIENCE * pending.push.wait_s + self._settings.retry_s:
                waited = f"{now - pending.started:.0f} s"
                self._give_up(
                    DeadlineError(f"{self._settings.peer}: no result of {pending.push.round} in {waited}")
                )
                return
            if now - pending.asked > self._settings.retry_s:
                self.pull(pending)

    def peer_traffic(self, timeout_s: float = 30.0) -> dict[str, Traffic]:
        """Asks the peer for the bytes of its links, by the node at the other end.

        Raises:
            LinkError: the peer was lost, or gives no answer in time.
        """
        with self._changed:
            self._raise_error()
            self._report = None
        self._link.send(TrafficQuery())
        with self._changed:
            self._changed.wait_for(lambda: self._report is not None or self._error is not None, timeout_s)
            self._raise_error()
            if self._report is None:
                raise DeadlineError(f"{self._settings.peer}: no report of its traffic in {timeout_s:.0f} s")
            return {peer: Traffic(sent, received) for peer, sent, received in self._report.links}

    def close(self, reason: str = "") -> None:
        """Ends the connection; may be called twice.

        It waits for the peer to close first, so that the peer has read all that we sent.

        Args:
            reason: why we give up, for the peer; empty when we have done our part.
        """
        if self._closing:
            self._link.close()
            return
        self._closing = True
        if reason:
            self._link.part(Refusal(reason), BEFORE_ALL)
        else:
            self._link.leave()
        self._carrier.close()

    def _raise_error(self) -> None:
        if self._error is not None:
            raise self._error

    def rejoined(self) -> None:
        """See `Listening`: asks again for what is pending."""
        self._carrier.joined(self._link)
        with self._changed:
            waiting = list(self._pending.values())
        for pending in waiting:
            self.pull(pending)
        self._back()

    def take(self, message: Message) -> None:
        """See `Listening`."""
        if self._first(message):
            return
        match message:
            case Answer():
                if (answer := self._carrier.answered(message)) is not None:
                    self.answer(answer, message.payload)
            case Blocks() | Received():
                self._carrier.take(message)
            case Missing(round=round_id):
                with self._changed:
                    pending = self._pending.get(round_id)
                if pending is not None:
                    self._carrier.send(pending.push, again=True)
            case TrafficReport():
                with self._changed:
                    self._report = message
                    self._changed.notify_all()
            case Refusal(reason=reason):
                raise RefusedError(f"{self._settings.peer}: {reason}")
            case _:
                raise ProtocolError(
                    f"{self._settings.peer} sends {type(message).__name__}, which we do not take"
                )

    def answer(self, answer: Answer, came: Payload | None = None) -> None:
        """Takes a result, whoever it came from; `came` is its payload on the link where that is another.

        Raises:
            ProtocolError: its values cannot be read.
        """
        with self._changed:
            pending = self._pending.pop(answer.round, None)
        if pending is not None:  # else a second answer to a second question
            values = decode(answer.round.unit, answer.payload)
            pending.result = Result(values, answer.weight, answer.priority)
            came = came or answer.payload
            self.observer.answered(self._settings.name, answer.round, came, block_bytes(came))
            self._finish(pending)

    def _finish(self, pending: Pending) -> None:
        with self._changed:
            pending.ended = self._clock()
            pending.finished = True
            self._changed.notify_all()
        if pending.then is not None:
            pending.then(pending)

    def lost(self, error: GeoError) -> None:
        """See `Listening`: all that waits ends by the error."""
        with self._changed:
            self._error = self._error or error
            given_up = list(self._pending.values())
            self._pending.clear()
            self._changed.notify_all()
        for pending in given_up:
            pending.error = error
            self._finish(pending)

    def _give_up(self, error: GeoError) -> None:
        self._link.drop()
        self.lost(error)
