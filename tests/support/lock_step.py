"""Workers that step one after the other in one thread, whose means land when a test says so."""

from collections import defaultdict

import numpy as np
from geokfp.components.geo_training.workers.plane import Members


class LockStep:
    """All workers' planes.

    Args:
        names: of the workers.
        late: how many steps after it was begun a mean has landed.
    """

    def __init__(self, names, late):
        self.names, self.late, self.step = tuple(names), late, 0
        self.brought = defaultdict(dict)

    def plane(self, name):
        return LockStepPlane(self, name)


class LockStepPlane:
    first_round = None

    def __init__(self, all_workers, name):
        self.members = Members(workers=all_workers.names, name=name)
        self.index, self.size = all_workers.names.index(name), len(all_workers.names)
        self._all, self._numbers = all_workers, defaultdict(int)

    def mean(self, role, layout, values, weight, scope=None):
        assert scope is None
        kind = (role, layout.start)
        key = (*kind, self._numbers[kind])
        self._numbers[kind] += 1
        self._all.brought[key][self.index] = (values, weight)
        return LockStepFlight(self._all, key, self._all.step)


class LockStepFlight:
    def __init__(self, all_workers, key, begun):
        self._all, self._key, self._begun, self.weight = all_workers, key, begun, 0.0

    @property
    def landed(self):
        return self._all.step >= self._begun + self._all.late

    def wait(self):
        brought = self._all.brought[self._key]
        assert len(brought) == len(self._all.names), "waits for a worker that steps later"
        self.weight = sum(weight for _, weight in brought.values())
        return sum(values for values, _ in brought.values()) / np.float32(self.weight)
