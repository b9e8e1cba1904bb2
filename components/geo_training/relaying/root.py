"""The root's part where sites relay: it plans, tells the plans with results, and hears what transfers took.

Knows nothing of values: who is told what, and when.
"""

import threading
import time
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Sequence
from random import Random

from ..scheduling.relay import Coordinator
from ..scheduling.trees import way
from ..topology import ROOT
from ..wire.messages import Answer, Message, Push
from ..wire.relay_messages import MOST_UNITS, Measured, Plan, Receipt, Trees, Without
from ..wire.units import RoundId, Unit
from .meter import Meter, frame_bytes
from .plans import Plans, planned

_TRIAL_SHARE = 1 / 8
"""Share of the model's bytes that a trial takes."""
_STRAYS_KEPT = 4096


class RootRelaying:
    """See `Relaying`.

    Args:
        coordinator: plans the trees.
        plans: the plans so far; those to come are added.
        random: where chance comes from.
        send: sends to a site, in the message's turn by its priority.
        used: is told the trees of each round that went by a plan, without those of a trial.

    Attributes:
        plans: all plans that are remembered.
    """

    def __init__(
        self,
        coordinator: Coordinator,
        plans: Plans,
        random: Random,
        send: Callable[[str, Message, int], None],
        used: Callable[[Trees], None] | None = None,
    ) -> None:
        self._coordinator = coordinator
        self.plans = plans
        self._random = random
        self._send = send
        self._used = used
        self._clock: Callable[[], float] = time.monotonic
        self._lock = threading.Lock()
        self._newest = 0
        self._units: dict[Unit, int] = {}
        self._strays: OrderedDict[RoundId, set[str]] = OrderedDict()
        self._meters: dict[str, Meter] = defaultdict(Meter)
        self._told: dict[str, int] = {}

    def take(self, peer: str, message: Message) -> bool:
        """Takes what a site sends beside its contributions; returns whether it was of relaying."""
        match message:
            case Receipt(round=round_id):
                with self._lock:
                    self._meters[peer].received(round_id, self._clock())
            case Without(round=round_id):
                self._strays_of(round_id).add(peer)
            case Measured(links=()):
                self._tell_again(peer)
            case Measured(number=number, links=links):
                with self._lock:
                    for to, num_bytes, seconds in links:
                        if num_bytes:
                            self._coordinator.rates.measured((peer, to), num_bytes, seconds, number)
                        else:
                            self._coordinator.rates.failed((peer, to), number)
            case _:
                return False
        return True

    def pushed(self, peer: str, push: Push) -> None:
        """Called with each contribution: says that it is there, and to relays that they need not wait."""
        if not planned(push.round):
            return
        self._send(peer, Receipt(push.round), 0)
        trees = self.plans.trees(push.round)
        with self._lock:
            self._units[push.round.unit] = frame_bytes(push)
        if trees is None or trees.up.get(peer) == ROOT:
            return
        self._strays_of(push.round).add(peer)
        for relay in way(trees.up, peer, ROOT)[1:-1]:
            self._send(relay, Without(push.round, push.covers), 0)

    def _tell_again(self, site: str) -> None:
        plan = self.plans.plan(self._newest)
        if plan is not None:
            self._send(site, plan, 0)

    def _strays_of(self, round_id: RoundId) -> set[str]:
        """Returns the sites that the plan does not reach in a round, which get its result from the root."""
        with self._lock:
            strays = self._strays.setdefault(round_id, set())
            while len(self._strays) > _STRAYS_KEPT:
                self._strays.popitem(last=False)
        return strays

    def receivers(self, answer: Answer, waiting: Sequence[str]) -> Sequence[str]:
        """Says who gets a result from the root; they have been told the next round's plan.

        Args:
            answer: the result.
            waiting: the sites that gave the root a contribution.
        """
        round_id = answer.round
        if not planned(round_id):
            return waiting
        trees, number = self.plans.trees(round_id), round_id.number + 1
        with self._lock:
            strays = self._strays.pop(round_id, set())
            if self._newest < number:
                self._tell_used(self.plans.plan(round_id.number))
            while self._newest < number:
                self._newest += 1
                self.plans.add(self._planned(self._newest))
            sites = waiting if trees is None else sorted({*self.plans.gets_from(round_id, ROOT), *strays})
            plan = self.plans.plan(number)
            untold = [site for site in sites if self._told.get(site, -1) < number]
            for site in sites:
                self._meters[site].sent(round_id, frame_bytes(answer), self._clock())
        for site in untold:
            if plan is not None:
                self._send(site, plan, 0)
                # Only now: another thread's result must not come before the plan. Twice does no harm.
                self._told[site] = number
        return sites

    def _tell_used(self, plan: Plan | None) -> None:
        if plan is not None and self._used is not None:
            self._used(plan.best)

    def _planned(self, number: int) -> Plan:
        for site, meter in self._meters.items():
            self._coordinator.rates.measured((ROOT, site), *meter.take(), number - 1)
        found = self._coordinator.plan(number, max(1, len(self._units)), self._random)
        if found.trial is None:
            return Plan(number, found.best, (), found.best)
        return Plan(number, found.best, self._some_units(), found.trial)

    def _some_units(self) -> tuple[Unit, ...]:
        units = sorted(self._units)
        self._random.shuffle(units)
        chosen: list[Unit] = []
        left = _TRIAL_SHARE * sum(self._units.values())
        for unit in units[:MOST_UNITS]:
            if chosen and self._units[unit] > left:
                continue
            chosen.append(unit)
            left -= self._units[unit]
        return tuple(sorted(chosen))
