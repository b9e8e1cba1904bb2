"""A worker whose weights are the root's, where the optimizer acts: gradients travel up, changes down."""

from ..checkpoints.state import State
from ..wire.messages import Array
from ..wire.units import GRADIENT, OWN
from ..workers.plane import Plane
from .base import SERVED, Gradient, Replica, Update
from .ending import Ask, all_have_ended, stay_until_all_are_done
from .statistics import average_statistics


class ServedWorker:
    """See `WorkerPolicy`: the local optimizer does not act.

    Args:
        own_rounds: whether each site has rounds of its own with the root, and waits for no other.
        meets: whether all workers ask for the agreed weights after the same steps, so that a round of all
            can bring them the root's.
    """

    def __init__(self, *, own_rounds: bool, meets: bool = False) -> None:
        self._own_rounds = own_rounds
        self._meets = own_rounds and meets

    def begin(self, replica: Replica, plane: Plane, update: Update) -> None:  # noqa: ARG002
        """See `WorkerPolicy`."""
        self._replica, self._plane, self._samples = replica, plane, 0
        site = plane.members.name.partition("/")[0]
        self._scope = f"{OWN}{site}" if self._own_rounds else plane.members.scope
        if plane.first_round is not None:
            plane.skip(GRADIENT, replica.layout, self._scope)

    def step(self, gradient: Gradient | None, num_samples: int) -> None:
        """See `WorkerPolicy`."""
        self._samples += num_samples
        own = None if gradient is None else gradient.flat()
        flight = self._plane.mean(GRADIENT, self._replica.layout, own, num_samples, self._scope)
        change = flight.wait()
        if change is not None:
            self._move(change)
        else:
            self._ended(has_ended=False)

    def agreed(self) -> Array | None:
        """See `WorkerPolicy`; with own rounds they are those of the worker's site, where all do not meet."""
        return self._of_root() if self._meets else None

    def finish(self) -> None:
        """See `WorkerPolicy`: stays while others step, then takes the root's weights exactly."""
        ask = Ask(GRADIENT, self._replica.layout, self._scope)
        stay_until_all_are_done(
            self._plane,
            {ask: None},
            lambda _ask, change, _weight: self._move(change),
            ended=lambda _: self._ended(has_ended=True),
        )
        self._replica.set_weights(self._of_root())
        average_statistics(self._replica, self._plane, self._samples)

    def state(self) -> State:
        """See `WorkerPolicy`; what the site has the root keeps."""
        return State(facts={"samples": self._samples})

    def load_state(self, state: State) -> None:
        """See `WorkerPolicy`."""
        self._samples = state.facts["samples"]

    def _of_root(self) -> Array:
        """Returns the root's weights; called by all workers at once."""
        weights = self._plane.sum(SERVED, self._replica.layout, None).wait()
        assert weights is not None  # the root answers though nobody brings anything
        return weights

    def _ended(self, *, has_ended: bool) -> bool:
        return all_have_ended(self._plane, self._scope, has_ended=has_ended)

    def _move(self, change: Array) -> None:
        self._replica.set_weights(self._replica.weights() + change)
