"""A tree whose nodes and workers are killed, start again and lose their links, in threads of the test."""

import threading
import time
from functools import partial
from pathlib import Path

import numpy as np
from geokfp.components.geo_training.checkpoints.journal import Journal
from geokfp.components.geo_training.checkpoints.memory import Memory
from geokfp.components.geo_training.checkpoints.node_checkpoints import ROUND, Keeper, Shelf
from geokfp.components.geo_training.compression import compression
from geokfp.components.geo_training.errors import GeoError, KeepingError, RefusedError
from geokfp.components.geo_training.links.client import Client, ClientSettings
from geokfp.components.geo_training.nodes.aggregator import Aggregator, AggregatorSettings
from geokfp.components.geo_training.nodes.entering import Entry
from geokfp.components.geo_training.nodes.presence import FaultRules
from geokfp.components.geo_training.nodes.route import TreeRouter
from geokfp.components.geo_training.synchronization import synchronization
from geokfp.components.geo_training.topology import ROOT
from geokfp.components.geo_training.wire.units import CHANGES, WEIGHTS
from geokfp.components.geo_training.workers.plane import Members, Plane
from support.faults import wait_until
from support.geo_tree import topology
from support.network import Network
from support.vector_training import LAYOUT, Gradient, Vector, descend, gradient_of

SILENCE_S = 1.0
"""Long beside a step, so that nobody is taken for dead who only waits for the processor."""
DEADLINE_S = 40.0


class Killed(Exception):
    """Ends the thread of a worker that a test kills."""


class FaultyTree:
    """See above.

    Args:
        text: the synchronisation.
        steps: that a worker takes in all.
        steps_a_round: that it takes between two rounds of all.
        sites, workers: how many sites, and workers of each.
        compressed: the compression.
        kept: where the root keeps what it needs to go on; None keeps nothing.
        every: rounds between two of its checkpoints.
        reconnect_s: that who is lost has to come back.
        before: called with the tree, a worker's name and its step, before the step.
        samples: gives those of a worker (its number) in a step; None for `weight_of`.
    """

    def __init__(
        self,
        text,
        *,
        steps=12,
        steps_a_round=1,
        sites=2,
        workers=2,
        compressed="none",
        kept: Path | None = None,
        every=3,
        reconnect_s=20.0,
        round_timeout_s=30.0,
        before=lambda _tree, _name, _step: None,
        samples=None,
    ):
        self.shape, self.network = topology(sites, workers), Network()
        self.synchronization, self.compression = synchronization(text), compression(compressed)
        self.steps, self.steps_a_round = steps, steps_a_round
        self.kept, self.every, self.before = kept, every, before
        self.samples = samples or weight_of
        self.reconnect_s, self.round_timeout_s = reconnect_s, round_timeout_s
        self.errors: dict[str, Exception] = {}
        self.first_rounds: dict[str, list[int | None]] = {name: [] for name in self.shape.workers}
        self.seen: dict[str, dict[int, np.ndarray]] = {name: {} for name in self.shape.workers}
        self.last: dict[str, np.ndarray] = {}
        self.weights_of_rounds: dict[tuple, list[float]] = {}
        self._processes: dict[str, object] = {}
        self._threads: list[threading.Thread] = []
        self._thread_of: dict[str, threading.Thread] = {}

    def run(self):
        """Starts all and waits until all have come to an end; returns itself."""
        for name in (ROOT, *(site.name for site in self.shape.sites), *self.shape.workers):
            self.start(name)
        deadline = time.monotonic() + DEADLINE_S
        while any(thread.is_alive() for thread in self._threads):
            assert time.monotonic() < deadline, f"{[t.name for t in self._threads if t.is_alive()]} hang"
            for thread in list(self._threads):
                thread.join(0.05)
        return self

    def start(self, name):
        """Starts a process of a node or worker."""
        process = self._processes[name] = self.network.at(name)
        target = self._work if "/" in name else self._serve
        ready = threading.Event()
        thread = threading.Thread(target=self._guard, args=(target, name, process, ready), name=name)
        self._threads.append(thread)
        self._thread_of[name] = thread
        thread.start()
        if "/" not in name:
            wait_until(ready.is_set, f"{name} to listen")

    def threads(self, names):
        """Returns the threads of the last processes."""
        return [self._thread_of[name] for name in names]

    def kill(self, *names):
        """Kills processes."""
        for name in names:
            process = self._processes.pop(name)
            process.kill()

    def restart(self, *names):
        """Kills processes, and starts others in their places."""
        self.kill(*names)
        for name in names:
            self.start(name)

    def is_current(self, name, process):
        return self._processes.get(name) is process

    def _guard(self, target, name, process, ready):
        try:
            target(name, process, ready)
        except Killed:
            pass
        except GeoError as error:
            if self.is_current(name, process):
                self.errors[name] = error

    def _client(self, name, peer, process, up):
        settings = ClientSettings(
            name=name,
            peer=peer,
            run="faulty",
            round_timeout_s=self.round_timeout_s,
            retry_s=2 * SILENCE_S,
            reconnect_s=self.reconnect_s,
            silence_s=SILENCE_S,
        )
        return Client(settings, lambda: process.connect(self.shape.address(peer), 1.0), up)

    def _serve(self, name, process, ready):
        chosen = self.synchronization
        is_root = name == ROOT
        policy = chosen.root(follows=True) if is_root else chosen.node()
        down = (self.compression if is_root else compression("none")).down()
        listener = process.listen(self.shape.address(name))
        ready.set()
        refused = chosen.cannot_enter
        rules = FaultRules(
            silence_s=SILENCE_S,
            reconnect_s=self.reconnect_s,
            leaves_out=chosen.quorum is not None,
            ends_with_process=is_root and self.kept is None,
            entry=Entry(changes="" if refused else chosen.changes, refused=refused),
        )
        children = frozenset(self.shape.children(name))
        memory = None
        if is_root and self.kept is not None:
            keeper = Keeper(Shelf(self.kept, ROOT, ROUND), {"policy": policy}, self.every)
            journal = MortalJournal(self.kept)
            memory = Memory(keeper, journal, policy, time.monotonic)
            process.at_death.append(journal.die)
        aggregator = Aggregator(
            AggregatorSettings(name=name, run="faulty", children=children, faults=rules),
            listener,
            TreeRouter(self.shape),
            Noting(policy, self.weights_of_rounds) if is_root and memory is None else policy,
            down,
            {} if is_root else {ROOT: self._client(name, ROOT, process, self.compression.up())},
        )
        process.at_death.append(lambda: aggregator.failed(RefusedError("killed")))
        try:
            aggregator.serve(None, memory)
        finally:
            process.kill()

    def _work(self, name, process, _ready):
        client = self._client(name, self.shape.site(name).name, process, compression("none").up())
        plane = Plane(client, Members(workers=self.shape.workers, name=name))
        worker, replica = self.shape.workers.index(name), Vector()
        policy = self.synchronization.worker()
        self.first_rounds[name].append(plane.first_round)
        replica.set_weights(plane.first(WEIGHTS, LAYOUT, replica.weights()))
        update = partial(descend, replica)
        policy.begin(replica, plane, update)
        for step in range((plane.first_round or 0) * self.steps_a_round, self.steps):
            self.before(self, name, step)
            if not self.is_current(name, process):
                raise Killed
            self.seen[name][step] = replica.weights()
            number = self.samples(worker, step)
            gradient = gradient_of(replica.weights(), worker, step) * np.float32(number)
            policy.step(Gradient(gradient, update), number)
        policy.finish()
        self.last[name] = replica.weights()
        plane.close()


class MortalJournal(Journal):
    """A journal that a killed root writes nothing to: its threads live on here."""

    def __init__(self, folder):
        super().__init__(folder)
        self._writing, self._is_dead = threading.RLock(), False

    def begin(self, checkpoint, **options):
        with self._writing:
            if self._is_dead:
                raise KeepingError("killed")
            super().begin(checkpoint, **options)

    def append(self, record):
        with self._writing:
            if self._is_dead:
                raise KeepingError("killed")
            super().append(record)

    def die(self):
        with self._writing:
            self._is_dead = True
            self.close()


def weight_of(worker, step):
    """Samples of a step: a bit for each of up to 4 workers and 12 steps, so that sums tell whose they are."""
    return 1 << (4 * step + worker)


def counted_once(weights_of_rounds):
    """Asserts that no sample counts twice in a unit; returns each (worker, step) that counts, by unit."""
    units = {}
    for round_id, weights in sorted(weights_of_rounds.items()):
        if round_id.unit.role not in CHANGES:
            continue
        (weight,) = weights
        bits = {bit for bit in range(60) if int(weight) >> bit & 1}
        of_unit = units.setdefault((round_id.scope, round_id.unit), set())
        assert not bits & of_unit, f"{round_id} counts samples again"
        of_unit |= bits
    return {unit: {(bit % 4, bit // 4) for bit in bits} for unit, bits in units.items()}


class Noting:
    """A root's policy that notes the weight of each round."""

    def __init__(self, policy, noted):
        self._policy, self._noted = policy, noted

    def rule(self, round_id):
        return self._policy.rule(round_id)

    def settle(self, round_id, reduction, total, weight):
        self._noted.setdefault(round_id, []).append(weight)
        return self._policy.settle(round_id, reduction, total, weight)

    def state(self):
        return self._policy.state()

    def load_state(self, state):
        self._policy.load_state(state)
