"""Full synchronisation piece by piece: each tensor leaves when its gradient is ready, is awaited when needed.

What P3 makes of `fsa` (Jayarajan et al., *Priority-based Parameter Propagation*, MLSys 2019): the backward
pass sends while it computes, and the next forward pass begins with the first layers while later ones are
under way. Every tensor's mean is that of `fsa`, bit for bit.
"""

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from ..checkpoints.state import State
from ..errors import UsageError
from ..wire.messages import Array
from ..wire.units import GRADIENT
from ..workers.plane import Flight, Layout, Plane
from .base import Gradient, Replica, Update
from .ending import Ask, all_have_ended, stay_until_all_are_done, step_without_samples
from .statistics import average_statistics


class PieceUpdate(Protocol):
    """Lets the framework's optimizer step the tensors of one piece; called once a piece and step."""

    def __call__(self, index: int, mean: Array) -> None:
        """Takes the flat mean gradient of the `index`-th piece of the replica's layout, float32."""


@dataclass(slots=True)
class _Step:
    """One step whose results have not all been taken.

    Attributes:
        num_samples: behind the gradients.
        flights: by piece, as it is sent; a piece that was taken is gone.
        sent: the pieces that were sent.
        is_empty: whether nobody brought any samples, so that the gradient is zero.
    """

    num_samples: int
    flights: dict[int, Flight] = field(default_factory=dict)
    sent: set[int] = field(default_factory=set)
    is_empty: bool = False


class Piecewise:
    """See `WorkerPolicy`, of `fsa`; the framework calls `offer` and `take` besides.

    A step is `offer` for any pieces, then `step` for the others; then `take` for each piece before its
    tensors are used, or `settle` for all that are left.
    """

    def begin(self, replica: Replica, plane: Plane, update: Update) -> None:
        """See `WorkerPolicy`."""
        self._replica, self._plane, self._update = replica, plane, update
        self._parts = [Layout((piece,)) for piece in replica.layout.pieces]
        self._update_piece: PieceUpdate | None = None
        self._samples = 0
        self._open: _Step | None = None
        self._under_way: _Step | None = None

    def step_pieces_by(self, update: PieceUpdate) -> None:
        """Has `update` called for a piece when it is taken; called once, after `begin`."""
        self._update_piece = update

    def offer(self, index: int, values: Array, num_samples: int) -> None:
        """Sends one piece of the step's gradient ahead of `step`.

        Args:
            index: of the piece in the replica's layout.
            values: its gradient summed over the samples, float32; must not change until it is taken.
            num_samples: those of the whole step.

        Raises:
            UsageError: the piece was offered before, or with another number of samples.
        """
        step = self._opened(num_samples)
        if index in step.sent:
            raise UsageError(
                f"{self._replica.layout.pieces[index].name}: a second gradient in one step, allowed: one "
                "backward pass a step"
            )
        self._send(step, index, values)

    def step(self, gradient: Gradient | None, num_samples: int) -> None:
        """See `WorkerPolicy`; sends what was not offered and waits for nothing."""
        step = self._opened(num_samples)
        self._samples += num_samples
        left = [index for index in range(len(self._parts)) if index not in step.sent]
        own = None if gradient is None or not left else gradient.flat()
        for index in left:
            part = self._parts[index]
            self._send(step, index, None if own is None else own[part.start : part.stop])
        self._open, self._under_way = None, step
        if self._update_piece is None:
            self.settle()

    @property
    def awaited(self) -> frozenset[int]:
        """The pieces of the last step that were not taken."""
        return frozenset() if self._under_way is None else frozenset(self._under_way.flights)

    def take(self, index: int) -> None:
        """Waits for one piece of the last step and steps its tensors, if that was not done."""
        step = self._under_way
        if step is None or index not in step.flights:
            return
        mean = step.flights.pop(index).wait()
        if mean is None:
            if not step.is_empty:
                # All workers see it at the same piece or another of this step, and ask once.
                all_have_ended(self._plane, self._plane.members.scope, has_ended=False)
                step.is_empty = True
            mean = np.zeros(self._parts[index].count, np.float32)
        assert self._update_piece is not None  # else `settle` has taken all
        self._update_piece(index, mean)
        if not step.flights:
            self._under_way = None

    def settle(self) -> None:
        """Takes all that is left of the last step."""
        if self._update_piece is not None:
            for index in sorted(self.awaited):
                self.take(index)
            return
        step, self._under_way = self._under_way, None
        if step is None:
            return
        means = [step.flights[index].wait() for index in range(len(self._parts))]
        if all(mean is None for mean in means):
            self._step_without_samples(has_ended=False)
            return
        parts = zip(self._parts, means, strict=True)
        self._update(np.concatenate([np.zeros(p.count, np.float32) if m is None else m for p, m in parts]))

    def agreed(self) -> None:
        """See `WorkerPolicy`; the replica's weights are what all agreed on, once all has been taken."""
        self.settle()

    def finish(self) -> None:
        """See `WorkerPolicy`; goes on stepping with the others, then averages what each has measured."""
        self.settle()
        stay_until_all_are_done(
            self._plane,
            {Ask(GRADIENT, self._replica.layout): None},
            lambda _ask, mean, _weight: self._update(mean),
            ended=lambda _: self._step_without_samples(has_ended=True),
        )
        average_statistics(self._replica, self._plane, self._samples)

    def state(self) -> State:
        """See `WorkerPolicy`; takes what is under way first."""
        self.settle()
        return State(facts={"samples": self._samples})

    def load_state(self, state: State) -> None:
        """See `WorkerPolicy`."""
        self._samples = state.facts["samples"]

    def _opened(self, num_samples: int) -> _Step:
        if self._open is None:
            self.settle()
            self._open = _Step(num_samples)
        elif self._open.num_samples != num_samples:
            raise UsageError(
                f"a step of {num_samples} samples whose gradient was sent as of {self._open.num_samples}, "
                "allowed: the same number"
            )
        return self._open

    def _send(self, step: _Step, index: int, values: Array | None) -> None:
        step.sent.add(index)
        step.flights[index] = self._plane.mean(GRADIENT, self._parts[index], values, step.num_samples)

    def _step_without_samples(self, *, has_ended: bool) -> bool:
        return step_without_samples(self._plane, self._replica, self._update, has_ended=has_ended)
