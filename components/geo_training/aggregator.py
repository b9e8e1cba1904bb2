"""One node of the tree: takes contributions, merges each round, and hands it on or ends it.

The same class serves a site and the root: which of the two it is in a round, the round's route says. The
thread that brings the last contribution merges; waits have deadlines. Knows nothing of connections
(`children`) or frameworks.
"""

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from .block_messages import Beside, Blocks, Received
from .carried import Value, carried_state, load_carried
from .children import Children, Door
from .client import Client, Pending, Result, Terms
from .compression import Compressor
from .dock import Dock
from .errors import DeadlineError, GeoError, ProtocolError, RefusedError
from .messages import NOTHING, Answer, Array, Message, Missing, Pull, Push, Refusal
from .metrics import UNOBSERVED, Observer
from .node_checkpoints import Keeper
from .reductions import REDUCTIONS
from .rounds import Contribution, Finished, Overdue, Repeated, Rounds
from .route import Router
from .state import State
from .synchronization import NodePolicy
from .synchronization.base import CHECKPOINT, POSITION, WEIGHTS
from .transport.base import Listener, Traffic
from .units import SITE, TREE, RoundId, Unit, shard_of, whole_scope

_TICK_S = 0.5
_FARTHER = 1.5
"""A node waits this much longer than the nodes below it, which know better whom they miss."""


@dataclass(frozen=True, kw_only=True, slots=True)
class AggregatorSettings:
    """Who the node is and how long it waits."""

    name: str
    """The node."""

    run: str
    """The run; peers of another are refused."""

    children: frozenset[str]
    """Nodes that may join; when all have left the node is done."""

    observer: Observer = UNOBSERVED
    """Is told what comes and goes."""

    children_begin: bool = False
    """Whether nothing counts of a child that does not begin: the node goes on from a checkpoint, and workers
    that have gone on meanwhile would be at another place."""


class Aggregator:
    """A node that others dial.

    Args:
        settings: who it is and how long it waits.
        listener: where the children come in.
        router: where each round goes.
        policy: what finishes a round and what is made of it.
        down: encodes the results for the children.
        uplinks: clients of the nodes that this one may hand rounds to, by node.
    """

    def __init__(
        self,
        settings: AggregatorSettings,
        listener: Listener,
        router: Router,
        policy: NodePolicy,
        down: Compressor,
        uplinks: Mapping[str, Client],
    ) -> None:
        self._settings = settings
        door = Door(
            name=settings.name, run=settings.run, children=settings.children, observer=settings.observer
        )
        self._children = Children(door, listener, self)
        self.dock = Dock(settings.name, self._children.send)
        self._router = router
        self._policy = policy
        self._down = down
        self._uplinks = uplinks
        self._clock: Callable[[], float] = time.monotonic
        self._rounds = Rounds(policy.rule)
        self._lock = threading.Lock()
        self._left: set[str] = set()
        self._begun: set[str] = set()
        self._keeper: Keeper | None = None
        self._error: GeoError | None = None
        self._ended = threading.Event()

    def load_state(self, state: State) -> None:
        """Takes over what `state` gave; called before `serve`."""
        load_carried(self._rounds, state)

    def serve(self, keeper: Keeper | None = None) -> None:
        """Works until every child has left, then leaves its own parents.

        Args:
            keeper: keeps the node's state; None keeps none.

        Raises:
            GeoError: a round waited too long or a parent was lost; all children have been told why.
        """
        self._keeper = keeper
        self._children.begin()
        try:
            while not self._ended.wait(_TICK_S):
                self.tick(self._clock())
        finally:
            self._ended.set()
            self._children.end()
            self.dock.close()
            reason = "" if self._error is None else str(self._error)
            for uplink in self._uplinks.values():
                uplink.close(reason)
        if self._error is not None:
            raise self._error

    def tick(self, now: float) -> None:
        """Finishes what time finishes, and gives up what waits too long; called from time to time."""
        with self._lock:
            events = list(self._rounds.tick(now))
        for event in events:
            if isinstance(event, Overdue):
                self.failed(DeadlineError(self._describe(event)))
                return
            self._finish(event)
        self.dock.tick(now)
        for uplink in self._uplinks.values():
            uplink.check()

    def traffic(self) -> dict[str, Traffic]:
        """Returns the bytes of each link of this node so far, by the node at the other end."""
        links = {
            peer: Traffic(t.sent_bytes, t.received_bytes) for peer, t in self._children.traffic().items()
        }
        for peer, beside in self.dock.traffic().items():
            links.setdefault(peer, Traffic()).add(beside)
        return links | {peer: uplink.traffic for peer, uplink in self._uplinks.items()}

    def take(self, peer: str, message: Message) -> bool:
        """See `Parent`."""
        match message:
            case Push():
                self._on_push(peer, message)
            case Pull(round=round_id):
                self._on_pull(peer, round_id)
            case Blocks() | Beside() | Received():
                self.dock.take(peer, message)
            case Refusal(reason=reason):  # the child gives up, and every round needs it
                self.failed(RefusedError(f"{peer}: {reason}"))
                return False
            case _:
                raise ProtocolError(f"{peer} sends {type(message).__name__}, which a node does not take")
        return True

    def left(self, peer: str) -> None:
        """See `Parent`."""
        with self._lock:
            self._left.add(peer)
            if self._left >= self._settings.children:
                self._ended.set()

    def failed(self, error: GeoError) -> None:
        """See `Parent`: gives all up."""
        with self._lock:
            self._error = self._error or error
        self._children.refuse(str(error))
        self._ended.set()

    def _on_push(self, peer: str, push: Push) -> None:
        if push.sender != peer:
            raise ProtocolError(f"{peer} pushes in the name of {push.sender}")
        reduction = REDUCTIONS.get(push.reduction)
        if reduction is None:
            raise ProtocolError(f"reduction {push.reduction!r} is not one of {', '.join(sorted(REDUCTIONS))}")
        values = self.dock.values(peer, push)
        if values is not None and reduction.keeps_count and values.size != push.round.unit.count:
            raise ProtocolError(f"{push.round}: {peer} brings {values.size} values")
        expected = self._router.route(push.round, self._settings.name).expected(self._settings.name)
        contribution = Contribution(
            peer,
            frozenset(push.covers),
            push.weight,
            push.wait_s,
            Value(push.reduction, values, push.priority),
            idle=values is None,
        )
        self._check_begun(peer, push.round)
        if self._keeper is not None:
            self._keeper.before(push.round)
        with self._lock:
            event = self._rounds.offer(push.round, contribution, expected, self._clock())
        if isinstance(event, Finished):
            self._finish(event)
        elif isinstance(event, Repeated) and event.result is not None:
            self.dock.answer(peer, event.result)

    def _check_begun(self, peer: str, round_id: RoundId) -> None:
        if not self._settings.children_begin:
            return
        if round_id.unit.role in (POSITION, WEIGHTS):
            self._begun.add(peer)
        if peer not in self._begun:
            name = self._settings.name
            raise ProtocolError(f"{name} goes on from a checkpoint: sites and workers must start again too")

    def _on_pull(self, peer: str, round_id: RoundId) -> None:
        with self._lock:
            event = self._rounds.ask(round_id, peer)
        if event is None:
            self._children.send(peer, Missing(round_id))
        elif isinstance(event, Repeated) and event.result is not None:
            self.dock.answer(peer, event.result)

    def _finish(self, finished: Finished) -> None:
        round_id, name = finished.round, self._settings.name
        priority = min(contribution.value.priority for contribution in finished.contributions)
        try:
            reduction, total = _merge(finished)
            next_hop = self._router.route(round_id, name).next_hop(name)
            if next_hop is not None:
                terms = Terms(
                    reduction=reduction,
                    weight=finished.weight,
                    wait_s=_FARTHER * finished.wait_s,
                    covers=finished.covers,
                    priority=priority,
                )
                self._uplinks[next_hop].push(round_id, total, terms, self._on_result)
                return
            if total is not None:
                total = self._policy.settle(round_id, REDUCTIONS[reduction], total, finished.weight)
        except GeoError as error:
            self.failed(error)
            return
        self._settle(round_id, Result(total, finished.weight, priority))

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
            payload = NOTHING if result.values is None else self._down.encode(_own(round_id), result.values)
        except GeoError as error:
            self.failed(error)
            return
        answer = Answer(round_id, result.weight, payload, result.priority)
        with self._lock:
            peers = self._rounds.settle(round_id, answer)
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

    def _describe(self, overdue: Overdue) -> str:
        here = self._children.present()
        missing = [
            worker
            if any(f"{worker}/".startswith(f"{peer}/") for peer in here)
            else f"{worker} (not connected)"
            for worker in overdue.missing
        ]
        name = self._settings.name
        return f"{name} waited {overdue.waited_s:.0f} s in {overdue.round} for {', '.join(missing)}"


def _merge(finished: Finished) -> tuple[str, Array | None]:
    names = {contribution.value.reduction for contribution in finished.contributions}
    if len(names) != 1:
        raise ProtocolError(f"{finished.round} is reduced by {sorted(names)} at once")
    name = names.pop()
    values = [c.value.values for c in finished.contributions if c.value.values is not None]
    if len({value.dtype for value in values}) > 1:
        raise ProtocolError(f"{finished.round} holds values of {sorted({v.dtype.str for v in values})}")
    return name, REDUCTIONS[name].merge(values, finished.round.unit.count) if values else None


def _own(round_id: RoundId) -> Unit:
    """Returns the unit that a compressor keeps state for: what one site is answered, no other one has."""
    scope = whole_scope(round_id.scope)
    if scope in (TREE, SITE):
        return round_id.unit
    return replace(round_id.unit, key=f"{round_id.unit.key} ({scope})")
