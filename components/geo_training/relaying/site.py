"""A site's way to the root by which sites relay for each other.

What the site's workers bring is merged with what other sites bring meanwhile, and handed to whom the round's
plan says; results that come are handed on as they are to the sites that get them from this one. Whatever goes
wrong between sites, the root is asked, and given, directly.
"""

import math
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass

from ..checkpoints.carried import Value
from ..compression import decode
from ..errors import GeoError, ProtocolError
from ..links.client import Client, Pending, Terms
from ..nodes.merging import contribution, merge
from ..nodes.rounds import Contribution, Finished
from ..topology import ROOT
from ..transport.base import Traffic
from ..wire.messages import NOTHING, Answer, Array, Message, Missing, Pull, Push
from ..wire.relay_messages import Measured, Plan, Receipt, Without
from ..wire.units import RoundId, Unit
from .gathering import Gathering
from .meter import Meter, frame_bytes
from .peers import Peers
from .plans import Plans, planned

STALLED_S = 10.0
"""Seconds without any receipt over a link that has something to carry, after which it counts as unusable."""


@dataclass(slots=True)
class _Handed:
    """A contribution that a relay was given; `there` once it said so."""

    push: Push
    relay: str
    there: bool = False


class SiteRelay:
    """See `Uplink`; of a site.

    Args:
        name: the site.
        client: the site's end of its link to the root.
        plans: the plans that the site is told; its routes.
        peers: the links to other sites.
        stalled_s: see `STALLED_S`.
    """

    def __init__(
        self, name: str, client: Client, plans: Plans, peers: Peers, stalled_s: float = STALLED_S
    ) -> None:
        self._name = name
        self._client = client
        self._plans = plans
        self._peers = peers
        self._stalled_s = stalled_s
        self._clock: Callable[[], float] = time.monotonic
        self._lock = threading.Lock()
        self._gathering = Gathering(name)
        self._then: dict[RoundId, Callable[[Pending], None]] = {}
        self._handed: dict[RoundId, _Handed] = {}
        self._meters: dict[str, Meter] = defaultdict(Meter)
        self._unusable: set[str] = set()
        self._awaited: dict[RoundId, str] = {}
        self._number = 0
        self._handed_down: dict[Unit, int] = {}
        self._told: dict[str, int] = {}
        client.listen(self.heard_from_root, self.back_at_root)
        peers.begin(self)

    @property
    def first_round(self) -> int | None:
        """See `Uplink`."""
        return self._client.first_round

    def push(
        self, round_id: RoundId, values: Array | None, terms: Terms, then: Callable[[Pending], None]
    ) -> None:
        """See `Uplink`."""
        if not planned(round_id):
            self._client.push(round_id, values, terms, then)
            return
        self._report(round_id.number)
        own = Contribution(
            self._name,
            frozenset(terms.covers),
            terms.weight,
            terms.wait_s or 0.0,
            Value(terms.reduction, values, terms.priority),
            idle=values is None,
        )
        expected = self._plans.route(round_id, self._name).expected(self._name)
        giver = self._plans.gives(round_id, self._name)
        if giver != ROOT and not self._peers.linked(giver):
            self._client.send(Without(round_id, ()), 0)
        with self._lock:
            self._then[round_id] = then
            self._awaited[round_id] = giver
            gathered = self._gathering.own(round_id, own, expected, self._clock())
        self._hand_on(gathered)

    def check(self) -> None:
        """See `Uplink`."""
        self._client.check()
        now = self._clock()
        with self._lock:
            due = self._gathering.tick(now)
            stalled = [
                peer for peer, m in self._meters.items() if m.waits and now - m.since > self._stalled_s
            ]
        for gathered in due:
            self._hand_on(gathered)
        for peer in stalled:
            self._lost(peer, only_unread=True)

    def links(self) -> dict[str, Traffic]:
        """See `Uplink`."""
        return self._client.links() | self._peers.traffic()

    def traffic(self) -> dict[str, Traffic]:
        """See `Parent`."""
        return self.links()

    def close(self, reason: str = "") -> None:
        """See `Uplink`."""
        self._peers.close()
        self._client.close(reason)

    def heard_from_root(self, message: Message) -> bool:
        """Takes what the root sends; returns whether the client must not take it."""
        match message:
            case Plan():
                self._add(message)
            case Receipt(round=round_id):
                self._read(ROOT, round_id)
            case Without(round=round_id, covers=covers):
                with self._lock:
                    gathered = self._gathering.excuse(round_id, frozenset(covers), self._clock())
                self._hand_on(gathered)
            case Missing(round=round_id):
                return self._trusts_relay(round_id)
            case Answer():
                self._on_answer(ROOT, message)
                return False
            case _:
                return False
        return True

    def back_at_root(self) -> None:
        """Called when the link to the root was lost and made anew: nothing that was lost is waited for."""
        self._ask_for_plan()
        with self._lock:
            held = self._gathering.tick(math.inf)
        for gathered in held:
            self._hand_on(gathered)

    def heard(self, peer: str, message: Message) -> None:
        """See `Hearing`; of a relay that the site dialled."""
        match message:
            case Plan():
                self._add(message)
            case Receipt(round=round_id):
                self._read(peer, round_id)
            case Missing(round=round_id):
                self._go_round(round_id)
            case Answer():
                self._on_answer(peer, message)
                self._client.answer(message)
            case _:
                raise ProtocolError(f"{peer} sends {type(message).__name__}, which a relay does not")

    def cut(self, peer: str, *, back: bool) -> None:
        """See `Hearing`."""
        self._lost(peer, only_unread=False, usable=back)
        with self._lock:
            awaited = [round_id for round_id, giver in self._awaited.items() if giver == peer]
        self._ask_for_plan()
        for round_id in awaited:  # the results that the relay had for us, the root has or will have
            self._client.send(Without(round_id, ()), 0)
            self._client.send(Pull(round_id), 0)

    def take(self, peer: str, message: Message) -> bool:
        """See `Parent`; of the sites that dial this one."""
        match message:
            case Push():
                self._on_push(peer, message)
            case Receipt(round=round_id):
                with self._lock:
                    self._meters[peer].received(("down", round_id), self._clock())
            case _:
                raise ProtocolError(f"{peer} sends {type(message).__name__}, which a relay does not take")
        return True

    def left(self, peer: str) -> None:
        """See `Parent`; a site that ends needs no relay."""

    def failed(self, error: GeoError) -> None:
        """See `Parent`; the others see that nobody relays here, and go to the root."""

    def _ask_for_plan(self) -> None:
        self._client.send(Measured(self._number, ()), 0)

    def _add(self, plan: Plan) -> None:
        with self._lock:
            self._plans.add(plan)

    def _on_push(self, peer: str, push: Push) -> None:
        if not planned(push.round) or not push.covers:
            raise ProtocolError(f"{push.round}: {peer} brings what is not to be relayed")
        values = decode(push.round.unit, push.payload)
        brought = contribution(peer, push, values, frozenset(push.covers))
        self._peers.send_down(peer, Receipt(push.round), 0)
        with self._lock:
            event = self._gathering.offer(push.round, brought, self._clock())
        if event is False:
            self._peers.send_down(peer, Missing(push.round), 0)
        elif isinstance(event, Finished):
            self._hand_on(event)

    def _hand_on(self, gathered: Finished | None) -> None:
        if gathered is None:
            return
        round_id = gathered.round
        with self._lock:
            then = self._then.pop(round_id)
        priority = min(each.value.priority for each in gathered.contributions)
        try:
            reduction, total = merge(gathered)
            terms = Terms(
                reduction=reduction,
                weight=gathered.weight,
                wait_s=gathered.wait_s,
                covers=gathered.covers,
                priority=priority,
            )
            self._client.push(round_id, total, terms, then, self._give)
        except GeoError as error:
            push = Push(self._name, round_id, "sum", 0.0, 0.0, gathered.covers, NOTHING)
            then(Pending(push, 0.0, 0.0, None, error=error, finished=True))

    def _give(self, push: Push) -> bool:
        """Gives a contribution to the relay that the plan names; returns whether there is one."""
        relay = self._plans.route(push.round, self._name).next_hop(self._name) or ROOT
        with self._lock:
            self._meters[relay].sent(("up", push.round), frame_bytes(push), self._clock())
            if relay == ROOT:
                return False
            self._handed[push.round] = _Handed(push, relay)
        if self._peers.send_up(relay, push, push.priority):
            return True
        with self._lock:
            self._handed.pop(push.round, None)
            self._meters[relay].lost()
            self._unusable.add(relay)
            self._meters[ROOT].sent(("up", push.round), frame_bytes(push), self._clock())
        return False

    def _read(self, peer: str, round_id: RoundId) -> None:
        with self._lock:
            self._meters[peer].received(("up", round_id), self._clock())
            handed = self._handed.get(round_id)
            if handed is not None and handed.relay == peer:
                handed.there = True

    def _trusts_relay(self, round_id: RoundId) -> bool:
        """Tells whether a relay has the site's contribution, which the root does not have yet."""
        with self._lock:
            handed = self._handed.get(round_id)
            return handed is not None and handed.there

    def _lost(self, peer: str, *, only_unread: bool, usable: bool = False) -> None:
        with self._lock:
            self._meters[peer].lost()
            if not usable:
                self._unusable.add(peer)
            rounds = [
                round_id
                for round_id, handed in self._handed.items()
                if handed.relay == peer and not (only_unread and handed.there)
            ]
        for round_id in rounds:
            self._go_round(round_id)

    def _go_round(self, round_id: RoundId) -> None:
        """Gives the root what a relay was given."""
        with self._lock:
            handed = self._handed.pop(round_id, None)
            if handed is None:
                return
            self._meters[ROOT].sent(("up", round_id), frame_bytes(handed.push), self._clock())
        self._client.send(handed.push, handed.push.priority)

    def _on_answer(self, giver: str, answer: Answer) -> None:
        round_id = answer.round
        if not planned(round_id):
            return
        receipt = Receipt(round_id)
        if giver == ROOT:
            self._client.send(receipt, 0)
        else:
            self._peers.send_up(giver, receipt, 0)
        with self._lock:
            self._handed.pop(round_id, None)
            self._awaited.pop(round_id, None)
            if self._handed_down.get(round_id.unit, -1) >= round_id.number:
                return
            self._handed_down[round_id.unit] = round_id.number
        for site in self._plans.gets_from(round_id, self._name):
            self._hand_down(site, answer)

    def _hand_down(self, site: str, answer: Answer) -> None:
        """Sends a result as it came, after the plan of the next round."""
        number = answer.round.number + 1
        plan = self._plans.plan(number)
        if plan is not None and self._told.get(site, -1) < number:
            self._peers.send_down(site, plan, 0)
            # Only now: another thread's result must not come before the plan. Twice does no harm.
            self._told[site] = number
        with self._lock:
            self._meters[site].sent(("down", answer.round), frame_bytes(answer), self._clock())
        if not self._peers.send_down(site, answer, answer.priority):
            with self._lock:
                self._meters[site].lost()
                self._unusable.add(site)

    def _report(self, number: int) -> None:
        """Tells the root, once a round, what transfers took since."""
        with self._lock:
            if number <= self._number:
                return
            before, self._number = self._number, number
            links = [(peer, *meter.take()) for peer, meter in sorted(self._meters.items())]
            links = [link for link in links if link[1]] + [(peer, 0, 0.0) for peer in sorted(self._unusable)]
            self._unusable.clear()
        if links:
            self._client.send(Measured(before, tuple(links)), 0)
