"""HFA: workers average at their site after K1 steps, sites after K1 * K2 (HierFAVG; Liu et al., ICC 2020).

Means are weighted by samples. With K1 = K2 = 1 and plain SGD it equals full synchronisation.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from ..checkpoints.state import State
from ..spec import check
from ..wire.units import DELTA, SITE
from ..workers.plane import Plane
from .base import Replica
from .ending import Ask
from .local_steps import LocalSteps, Steps


class Every:
    """See `Plan`: after a fixed number of steps.

    Args:
        k1: steps between two averages at the site.
        k2: every how many-th of these is one over all sites.
    """

    in_step = True

    def __init__(self, k1: int, k2: int = 1) -> None:
        self._k1, self._period = k1, k1 * k2
        self._site_asks: list[Ask] = []

    def begin(self, replica: Replica, plane: Plane) -> None:  # noqa: ARG002
        """See `Plan`."""
        if self._period > self._k1:
            self._site_asks = [Ask(DELTA, replica.layout, SITE)]

    def enter(self, replica: Replica, plane: Plane, rounds: int) -> int:
        """See `Plan`."""
        if self._site_asks:
            of_site = self._period // self._k1 - 1
            plane.skip(DELTA, replica.layout, SITE, lambda before: before * of_site)
        return rounds * self._period

    def asks(self) -> list[Ask]:
        """See `Plan`."""
        return self._site_asks

    @contextmanager
    def synchronising(self, step: int) -> Iterator[None]:  # noqa: ARG002
        """See `Plan`."""
        yield

    def due(self, step: int, fragments: int) -> list[int]:
        """See `Plan`; fragments come one after the other, evenly over the steps."""
        offsets = [index * self._period // fragments for index in range(fragments)]
        return [index for index, offset in enumerate(offsets) if (step - offset) % self._period == 0]

    def site_due(self, step: int) -> bool:
        """See `Plan`."""
        return self._period > self._k1 and step % self._k1 == 0

    def state(self) -> State:
        """See `Plan`; nothing but the step says what is due."""
        return State()

    def load_state(self, state: State) -> None:
        """See `Plan`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Hfa:
    """Averages weights, at the site and over all sites.

    Raises:
        InputError: a value that is not allowed; names the option, the value and what is.
    """

    k1: Steps = 20
    """Steps between two averages at a site."""
    k2: Steps = 1
    """Every how many-th average is one over all sites."""

    def __post_init__(self) -> None:
        """Checks the values."""
        check(self)

    def local_steps(self, fragments: int) -> LocalSteps:
        """Returns the worker's end."""
        return LocalSteps(Every(self.k1, self.k2), fragments)
