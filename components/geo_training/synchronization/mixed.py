"""MixedSync of GeoMX: synchronous inside a site, asynchronous between sites.

The gradient of a site goes to the root in a round of the site's own. The root lets its optimizer act at once,
and answers with the change of the weights since that site's last answer. A site's gradient is thus of weights
that others have changed meanwhile; the optimizer `dcasgd` corrects for it.
"""

from dataclasses import dataclass

import numpy as np

from ..messages import Array
from ..plane import Plane
from ..units import OWN
from .base import Replica, Update
from .ending import Ask, stay_until_all_are_done
from .fsa import GRADIENT
from .statistics import average_statistics


class ServedWorker:
    """See `WorkerPolicy`: the weights are the root's, where its optimizer acts; the local one does not.

    Args:
        own_rounds: whether each site has rounds of its own with the root, and waits for no other.
    """

    def __init__(self, *, own_rounds: bool) -> None:
        self._own_rounds = own_rounds

    def begin(self, replica: Replica, plane: Plane, update: Update) -> None:  # noqa: ARG002
        """See `WorkerPolicy`."""
        self._replica, self._plane, self._samples = replica, plane, 0
        site = plane.members.name.partition("/")[0]
        self._scope = f"{OWN}{site}" if self._own_rounds else plane.members.scope

    def step(self, gradient: Array | None, num_samples: int) -> None:
        """See `WorkerPolicy`."""
        self._samples += num_samples
        self._move(self._exchange(gradient, num_samples))

    def agreed(self) -> None:
        """See `WorkerPolicy`."""

    def finish(self) -> None:
        """See `WorkerPolicy`; when all have ended, every site asks for the last weights."""
        ask = Ask(GRADIENT, self._replica.layout, self._scope)
        stay_until_all_are_done(self._plane, {ask: None}, lambda _ask, change, _weight: self._move(change))
        if self._own_rounds:
            self._plane.total(np.zeros(1))
            self._move(self._exchange(np.zeros(self._replica.layout.count, np.float32), 0))
        average_statistics(self._replica, self._plane, self._samples)

    def _exchange(self, gradient: Array | None, num_samples: int) -> Array | None:
        return self._plane.mean(GRADIENT, self._replica.layout, gradient, num_samples, self._scope).wait()

    def _move(self, change: Array | None) -> None:
        if change is not None:
            self._replica.set_weights(self._replica.weights() + change)


@dataclass(frozen=True, kw_only=True, slots=True)
class Mixed:
    """Each site exchanges with the root when it is ready, and waits for no other."""
