"""One node of the tree: takes contributions, merges each round, and hands it on or ends it.

The same class serves a site and the root: which of the two it is in a round, the round's route says. The
thread that brings the last contribution merges; waits have deadlines. Knows nothing of connections
(`children`) or frameworks.
"""

import threading
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace

import numpy as np

from ..checkpoints.answers import Answers
from ..checkpoints.carried import Value, carried_state, load_carried
from ..checkpoints.journal import Record
from ..checkpoints.memory import Memory
from ..checkpoints.node_checkpoints import Keeper
from ..checkpoints.remembered import lasting_state, late_contribution, late_record, load_lasting
from ..checkpoints.state import State
from ..compression import Compressor
from ..errors import DeadlineError, GeoError, ProtocolError, RefusedError
from ..links.children import Children, Door
from ..links.client import Pending, Result, Terms
from ..links.dock import Dock
from ..links.heartbeats import Silence
from ..relaying import Relaying, Uplink
from ..synchronization import NodePolicy
from ..synchronization.base import CHECKPOINT, POSITION, SERVED
from ..transport.base import Listener, Traffic
from ..transport.outbox import URGENT
from ..wire.block_messages import IN_BLOCKS, Beside, Blocks, Received
from ..wire.messages import NOTHING, Answer, Message, Missing, Pull, Push, Refusal
from ..wire.units import ENTERING, WEIGHTS, RoundId, shard_of
from .doorway import Doorway
from .merging import Merged, contribution, merged, of_receiver
from .presence import Presence
from .reductions import REDUCTIONS
from .rounds import Contribution, Done, Finished, Overdue, Repeated
from .route import Router
from .settings import AggregatorSettings as AggregatorSettings
from .shelf import in_memory

_TICK_S = 0.5
_FARTHER = 1.5
"""A node waits this much longer than the nodes below it, which know better whom they miss."""


class Aggregator:
    """A node that others dial.

    Args:
        settings: who it is and how long it waits.
        listener: where the children come in.
        router: where each round goes.
        policy: what finishes a round and what is made of it.
        down: encodes the results for the children.
        uplinks: ways to the nodes that this one may hand rounds to, by node.

    Attributes:
        relaying: what a root does where sites relay for each other, set before `serve`.
        answers: what it keeps of its answers, set before `serve`; None for nothing.
    """

    def __init__(
        self,
        settings: AggregatorSettings,
        listener: Listener,
        router: Router,
        policy: NodePolicy,
        down: Compressor,
        uplinks: Mapping[str, Uplink],
    ) -> None:
        self._settings = settings
        self._clock: Callable[[], float] = time.monotonic
        self._presence = Presence(
            settings.name, settings.children, router, settings.faults, policy.rule, self._clock
        )
        if settings.holds_back:
            self._presence.hold_back()
        self._rounds, self._lock = self._presence.rounds, self._presence.lock
        door = Door(
            name=settings.name,
            run=settings.run,
            children=settings.children,
            observer=settings.observer,
            silence=Silence(settings.faults.silence_s),
        )
        self._children = Children(door, listener, self, self._presence)
        self.dock = Dock(settings.name, self._children.send)
        self._router = router
        self._policy = policy
        self._down = down
        self._uplinks = uplinks
        self._doorway = Doorway(self._presence, self)
        self._children_begin = False
        self._begun: set[str] = set()
        self._keeper: Keeper | None = None
        self._memory: Memory | None = None
        self._order: AbstractContextManager[object] = nullcontext()
        self._error: GeoError | None = None
        self._ended = threading.Event()
        self.relaying: Relaying | None = None
        self.answers: Answers | None = None

    def load_state(self, state: State) -> None:
        """Takes over what `state` gave; called before `serve`."""
        load_carried(self._rounds, state)

    def serve(self, keeper: Keeper | None = None, memory: Memory | None = None) -> None:
        """Works until every child has left, then leaves its own parents.

        Args:
            keeper: keeps the node's state where workers ask for it; None keeps none.
            memory: of a root that keeps its state by itself; None where it need not outlive a kill.

        Raises:
            GeoError: a round waited too long or a parent was lost; all children have been told why.
        """
        self._keeper = keeper
        if memory is not None:
            self._memory, self._order = memory, memory.order
            self._presence.before_admission = lambda join: memory.decide(join, self)
        if self.answers is not None:
            self._presence.before_admission = self.answers.admit
            self._presence.catching_up = self.answers.behind
        for uplink in self._uplinks.values():
            if uplink.first_round is not None:
                self._presence.go_on(uplink.first_round)
        self._children.begin()
        try:
            while not self._ended.wait(_TICK_S):
                self.tick(self._clock())
        finally:
            self._ended.set()
            self._presence.gate.end()
            self._children.end()
            self.dock.close()
            reason = "" if self._error is None else str(self._error)
            for uplink in self._uplinks.values():
                uplink.close(reason)
        if self._error is not None:
            raise self._error

    def tick(self, now: float) -> None:
        """Finishes what time finishes, and gives up what waits too long; called from time to time."""
        with self._order:
            with self._lock:
                events = self._presence.tick(now)
            for event in events:
                if isinstance(event, Overdue):
                    self.failed(DeadlineError(self._presence.described(event, self._children.present())))
                    return
                self._go_on(self._merged(event))
        self.dock.tick(now)
        for uplink in self._uplinks.values():
            uplink.check()
        if (error := self._presence.given_up(now)) is not None:
            self.failed(error)
        elif self._presence.all_gone(now):
            self._ended.set()

    def traffic(self) -> dict[str, Traffic]:
        """Returns the bytes of each link of this node so far, by the node at the other end."""
        links = {
            peer: Traffic(t.sent_bytes, t.received_bytes) for peer, t in self._children.traffic().items()
        }
        for peer, beside in self.dock.traffic().items():
            links.setdefault(peer, Traffic()).add(beside)
        for uplink in self._uplinks.values():
            links |= uplink.links()
        return links

    def take(self, peer: str, message: Message) -> bool:
        """See `Parent`."""
        if self.answers is not None and self.answers.take(peer, message):
            return True
        match message:
            case Push():
                self._on_push(peer, message)
            case Pull(round=round_id):
                self._on_pull(peer, round_id)
            case Blocks() | Beside() | Received():
                self.dock.take(peer, message)
            case Refusal(reason=reason):  # the child gives up
                if not self._settings.faults.leaves_out:
                    self.failed(RefusedError(f"{peer}: {reason}"))
                return False
            case _:
                if self.relaying is None or not self.relaying.take(peer, message):
                    raise ProtocolError(f"{peer} sends {type(message).__name__}, which a node does not take")
        return True

    def left(self, peer: str) -> None:
        """See `Parent`."""
        self._presence.left(peer)
        if self._presence.all_gone(self._clock()):
            self._ended.set()

    def failed(self, error: GeoError) -> None:
        """See `Parent`: gives all up."""
        with self._lock:
            self._error = self._error or error
        self._children.refuse(str(error))
        self._ended.set()

    def _on_push(self, peer: str, push: Push) -> None:
        if push.round.unit.role == ENTERING:
            self._doorway.ask(peer, push)
            return
        route = self._router.route(push.round, self._settings.name)
        values, block_bytes = self.dock.values(peer, push)
        brought = contribution(peer, push, values, route.expected(peer))
        if push.payload.codec == IN_BLOCKS:
            self._settings.observer.pushed(peer, push.round, push.payload, block_bytes)
        self._check_begun(peer, push.round)
        if self._memory is not None:
            self._memory.before(push.round, self)
        if self.relaying is not None:
            self.relaying.pushed(peer, push)
        with self._lock:
            self._presence.entrances.begin(peer, push.round)
        self._offer(peer, push.round, brought)

    def send(self, peer: str, message: Message, priority: int = URGENT) -> None:
        """See `Host`; in the message's turn."""
        self._children.send(peer, message, priority)

    def bring_nothing(self, peer: str, round_id: RoundId, wait_s: float) -> None:
        """See `Host`."""
        covers = self._router.route(round_id, self._settings.name).expected(peer)
        self._offer(peer, round_id, Contribution(peer, covers, 0.0, wait_s, Value("mean", None), idle=True))

    def above(self, round_id: RoundId) -> Uplink | None:
        """See `Host`."""
        name = self._settings.name
        return self._uplinks.get(self._router.route(round_id, name).next_hop(name) or "")

    def _offer(self, peer: str, round_id: RoundId, brought: Contribution) -> None:
        expected = self._router.route(round_id, self._settings.name).expected(self._settings.name)
        brought = self._presence.holdings.bring(round_id, brought)
        with self._order:
            with self._lock:
                event = self._presence.offer(round_id, brought, expected, self._clock())
            if isinstance(event, Finished):
                whole = self._merged(event)
                del event, brought  # the contributions' memory goes before answers are waited for
                self._go_on(whole)
                return
            if isinstance(event, Repeated) and event.is_late:
                self._note_late(round_id, brought)
        if isinstance(event, Repeated) and event.result is not None:
            self.dock.answer(peer, in_memory(event.result))

    def _note_late(self, round_id: RoundId, late: Contribution) -> None:
        if self._memory is not None:
            self._memory.note(late_record(round_id, late))

    def _check_begun(self, peer: str, round_id: RoundId) -> None:
        if not self._children_begin:
            return
        if round_id.unit.role in (POSITION, WEIGHTS):
            self._begun.add(peer)
        if peer not in self._begun:
            name = self._settings.name
            raise ProtocolError(f"{name} goes on from a checkpoint: sites and workers must start again too")

    def _on_pull(self, peer: str, round_id: RoundId) -> None:
        if round_id.unit.role == ENTERING:
            self._doorway.ask_again(peer, round_id)
            return
        with self._lock:
            event = self._rounds.ask(round_id, peer, self._router.route(round_id, peer).expected(peer))
        if event is None:
            self._children.send(peer, Missing(round_id))
        elif isinstance(event, Repeated) and event.result is not None:
            self.dock.answer(peer, in_memory(event.result))

    def _merged(self, finished: Finished) -> Merged | None:
        try:
            return merged(finished)
        except GeoError as error:
            self.failed(error)
            return None

    def _go_on(self, whole: Merged | None) -> None:
        """Hands a round on, or ends it; None is of a round that was given up."""
        if whole is None:
            return
        round_id, name, total = whole.round, self._settings.name, whole.values
        try:
            next_hop = self._router.route(round_id, name).next_hop(name)
            if next_hop is not None:
                terms = Terms(
                    reduction=whole.reduction,
                    weight=whole.weight,
                    wait_s=_FARTHER * whole.wait_s,
                    covers=whole.covers,
                    priority=whole.priority,
                )
                self._uplinks[next_hop].push(round_id, total, terms, self._on_result)
                return
            if round_id.unit.role == SERVED:  # a question, which nobody brings anything to
                total = np.zeros(round_id.unit.count, np.float32)
            result = Result(total, whole.weight, whole.priority)
            self._note(round_id, whole.reduction, result)
            self._end(round_id, whole.reduction, result)
        except GeoError as error:
            self.failed(error)

    def _note(self, round_id: RoundId, reduction: str, merged: Result) -> None:
        if self._memory is None:
            return
        with self._lock:
            done = self._rounds.done_of(round_id)
        record = Record(
            round=round_id,
            reduction=reduction,
            weight=merged.weight,
            senders=tuple(sorted(done.waiting)),
            covers=tuple(sorted(done.covered)),
            values=merged.values,
            priority=merged.priority,
        )
        self._memory.note(record)

    def _end(self, round_id: RoundId, reduction: str, merged: Result) -> None:
        """Makes of merged values what the round came to, where it ends."""
        total = merged.values
        if total is not None:
            total = self._policy.settle(round_id, REDUCTIONS[reduction], total, merged.weight)
        self._settle(round_id, replace(merged, values=total))

    def memory_state(self) -> State:
        """See `Node`."""
        with self._lock:
            return lasting_state(self._presence, self._down)

    def load_memory(self, state: State) -> None:
        """See `Node`: all have begun before."""
        self._presence.go_on(0)
        if state.facts:
            load_lasting(self._presence, self._down, state)

    def redo(self, record: Record) -> None:
        """See `Node`."""
        round_id = record.round
        expected = self._router.route(round_id, self._settings.name).expected(self._settings.name)
        if record.is_late:
            self._rounds.offer(round_id, late_contribution(record), expected, self._clock())
            return
        self._rounds.redo(round_id, Done(expected, set(record.covers), set(record.senders)))
        self._end(round_id, record.reduction, Result(record.values, record.weight, record.priority))

    def begin_again(self) -> None:
        """See `Node`: who has gone on meanwhile would be at another place."""
        self._children_begin = True

    def _on_result(self, pending: Pending) -> None:
        if pending.result is None:
            assert pending.error is not None
            self.failed(pending.error)
        else:
            self._settle(pending.push.round, pending.result)

    def _settle(self, round_id: RoundId, result: Result) -> None:
        try:
            if result.values is not None and self._keeps_for(round_id):
                self._keep(int(result.values[0]))
            payload = (
                NOTHING if result.values is None else self._down.encode(of_receiver(round_id), result.values)
            )
        except GeoError as error:
            self.failed(error)
            return
        answer = Answer(round_id, result.weight, payload, result.priority)
        peers = self._presence.holdings.settle(round_id, answer)
        if self.answers is not None:
            self.answers.note(answer, peers)
        self._doorway.settled(round_id, payload)
        if self.relaying is not None:
            peers = tuple(self.relaying.receivers(answer, peers))
        for peer in peers:
            self.dock.answer(peer, answer)

    def _keeps_for(self, round_id: RoundId) -> bool:
        """Whether a checkpoint is asked for here: at a site's node once, however many roots are asked."""
        ends_here = self._router.route(round_id, self._settings.name).next_hop(self._settings.name) is None
        return round_id.unit.role == CHECKPOINT and (ends_here or not shard_of(round_id.scope))

    def _keep(self, number: int) -> None:
        """Keeps the state; all workers wait for the answer, so that nothing else is under way."""
        if self._keeper is not None:
            with self._lock:
                own = carried_state(self._rounds)
            self._keeper.write(number, own)
