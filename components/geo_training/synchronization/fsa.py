"""Full synchronisation at both levels (FSA, HiPS of GeoMX): every worker of every site in every step.

Each step's gradient is the mean over all samples of all workers, so training equals one process on the joined
batch. The optimizer acts on every worker alike, or at the root, whose state is then kept once.
"""

from dataclasses import dataclass
from typing import Annotated

from ..checkpoints.state import State
from ..optimizers import OPTIMIZERS, OptimizerSpec
from ..spec import Nested, check
from ..wire.messages import Array
from ..wire.units import GRADIENT
from ..workers.plane import Plane
from .base import Gradient, Replica, Update
from .ending import Ask, stay_until_all_are_done, step_without_samples
from .piecewise import Piecewise
from .served_worker import ServedWorker
from .statistics import average_statistics


class FullAtWorker:
    """See `WorkerPolicy`: every worker steps its own replica of the optimizer with the same numbers."""

    def begin(self, replica: Replica, plane: Plane, update: Update) -> None:
        """See `WorkerPolicy`."""
        self._replica, self._plane, self._update = replica, plane, update
        self._samples = 0

    def step(self, gradient: Gradient | None, num_samples: int) -> None:
        """See `WorkerPolicy`."""
        self.exchange(None if gradient is None else gradient.flat(), num_samples)

    def exchange(self, own: Array | None, num_samples: int) -> None:
        """Steps with the mean of all workers' gradients.

        Args:
            own: the worker's own, float32 [layout.count]; None where it has none.
            num_samples: of the worker in this step.
        """
        self._samples += num_samples
        mean = self._plane.mean(GRADIENT, self._replica.layout, own, num_samples).wait()
        if mean is None:
            self._step_without_samples(has_ended=False)
        else:
            self._update(mean)

    def agreed(self) -> None:
        """See `WorkerPolicy`."""

    def finish(self) -> None:
        """See `WorkerPolicy`; goes on stepping with the others, then averages what each has measured."""
        stay_until_all_are_done(
            self._plane,
            {Ask(GRADIENT, self._replica.layout): None},
            lambda _ask, mean, _weight: self._update(mean),
            ended=lambda _: self._step_without_samples(has_ended=True),
        )
        average_statistics(self._replica, self._plane, self._samples)

    def _step_without_samples(self, *, has_ended: bool) -> bool:
        return step_without_samples(self._plane, self._replica, self._update, has_ended=has_ended)

    def state(self) -> State:
        """See `WorkerPolicy`."""
        return State(facts={"samples": self._samples})

    def load_state(self, state: State) -> None:
        """See `WorkerPolicy`."""
        self._samples = state.facts["samples"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Fsa:
    """Averages the gradient over all workers of all sites in every step.

    Raises:
        InputError: a value that is not allowed; names the option, the value and what is.
    """

    optimizer: Annotated[OptimizerSpec | None, Nested(OPTIMIZERS)] = None
    """The root's, which acts on the mean gradient; None lets every worker's own act."""

    def __post_init__(self) -> None:
        """Checks the values."""
        check(self)

    def worker(self, *, piecewise: bool = False) -> FullAtWorker | ServedWorker | Piecewise:
        """Returns the worker's end.

        Args:
            piecewise: whether tensors are to come and go one by one, where the workers' optimizers act.
        """
        if self.optimizer is not None:
            return ServedWorker(own_rounds=False)
        return Piecewise() if piecewise else FullAtWorker()
