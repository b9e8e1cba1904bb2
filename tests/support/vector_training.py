"""One vector a worker, trained by a policy over a tree in memory."""

from functools import partial

import numpy as np
from geokfp.components.geo_training.synchronization import synchronization
from geokfp.components.geo_training.workers.plane import Layout, Members, Piece, Plane
from support.geo_tree import at_once, topology, tree
from support.memory_transport import MemoryTransport

COUNT = 6
PIECES = (Piece("large", 0, 4), Piece("other", 4, 2))
LAYOUT = Layout(PIECES)
"""Two units, which tensors of so few values would not be: rounds and fragments of their own."""
RATE = np.float32(0.1)


class Vector:
    """A model that is one vector, with a measured value."""

    def __init__(self, measured=0.0):
        self.layout = LAYOUT
        self.statistics_layout = Layout.of([("measured", 1)])
        self._weights, self._measured = np.zeros(COUNT, np.float32), np.array([measured], np.float32)

    def weights(self):
        return self._weights.copy()

    def set_weights(self, weights):
        self._weights = np.array(weights, np.float32)

    def statistics(self):
        return self._measured.copy()

    def set_statistics(self, statistics):
        self._measured = np.array(statistics, np.float32)


def descend(replica, mean):
    """Lets plain SGD take a step."""
    replica.set_weights(replica.weights() - RATE * mean)


class Gradient:
    """See `Gradient` of the policies; `update` is what its optimizer does."""

    def __init__(self, values, update=None):
        self._values, self._update = values, update

    def flat(self):
        return self._values

    def apply(self, num_samples):
        self._update(self._values / np.float32(num_samples))


def gradient_of(weights, worker, step):
    """Of a quadratic whose minimum depends on worker and step, so that who steps when matters."""
    target = np.cos(np.arange(COUNT) + worker + step).astype(np.float32)
    return (weights - target).astype(np.float32)


def samples_of(worker):
    return 1 + worker


def train(
    text,
    steps,
    shape=None,
    pause=None,
    *,
    after=None,
    compression="none",
    transmission="fifo",
    without=(),
    measuring=False,
    transport=None,
    slices=None,
):
    """Trains one vector a worker by plain SGD; returns weights by step, of each worker, and the replicas.

    Args:
        text: the synchronisation.
        steps: of each worker, or of all.
        shape: the tree; two sites of two workers if nothing else is said.
        pause: called with a worker's name and step before each step.
        after: called in the same way after it.
        compression: between the sites.
        transmission: of all messages.
        without: (worker, step) of the steps that are taken without samples.
        measuring: whether each step of a worker measures its number, as the first weights came with.
        transport: of all messages; one in memory if nothing else is said.
        slices: how units are cut; not at all if nothing else is said.
    """
    shape = shape or topology(2, 2)
    replicas = {name: Vector(measured=float(i)) for i, name in enumerate(shape.workers)}
    seen = {name: [] for name in shape.workers}

    def work(name):
        worker, replica = shape.workers.index(name), replicas[name]
        plane = Plane(whole.client(name), Members(workers=shape.workers, name=name), slices, len(whole.roots))
        plane.place(LAYOUT)
        policy = chosen.worker()
        first = plane.sum("weights", LAYOUT, replica.weights() if plane.index == 0 else None).wait()
        replica.set_weights(first)

        update = partial(descend, replica)
        policy.begin(replica, plane, update)
        for step in range(steps[worker] if isinstance(steps, list) else steps):
            if pause is not None:
                pause(name, step)
            number = 0 if (worker, step) in without else samples_of(worker)
            gradient = gradient_of(replica.weights(), worker, step) * np.float32(number)
            policy.step(Gradient(gradient, update) if number else None, number)
            seen[name].append(replica.weights())
            if measuring:
                replica.set_statistics([worker])
            if after is not None:
                after(name, step)
        policy.finish()
        plane.close()

    chosen = synchronization(text)
    choices = {"synchronization": text, "compression": compression, "transmission": transmission}
    with tree(shape, transport or MemoryTransport(), **choices) as whole:
        at_once(work, shape.workers)
    assert not whole.errors
    return seen, replicas


def one_model(replicas):
    """Returns the weights of all replicas, which must be the same bits."""
    first, *others = (replica.weights() for replica in replicas.values())
    for other in others:
        np.testing.assert_array_equal(other, first)
    return first
