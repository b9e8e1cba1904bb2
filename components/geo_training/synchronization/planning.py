"""The numbers that workers and root exchange where a controller plans rounds, and who reads them on the way.

Workers bring what each measured, of which the largest count (reduction `max`); the root answers with a rung
(`scheduling.controller`). Every node passes that answer on before it is given anything that was made by it.
"""

import threading

import numpy as np

from ..errors import UsageError
from ..scheduling.controller import Controller, Measured
from ..scheduling.ladder import Rung
from ..wire.messages import Array
from ..workers.plane import Layout, Plane
from .base import Replica

LAYOUT = Layout.of([("", 7)])


class ByTimesOfAll:
    """What plans have in common that are made by the times of all workers: see `Plan`."""

    def site_due(self, step: int) -> bool:  # noqa: ARG002
        """See `Plan`: no round joins a site alone."""
        return False

    def enter(self, replica: Replica, plane: Plane, rounds: int) -> int:  # noqa: ARG002
        """See `Plan`: nobody comes when the others have begun."""
        raise UsageError("a plan by the times of all workers is made from the start")


def measured_to(measured: Measured) -> Array:
    """Returns what a worker brings, float64 [7]; of rounds' times the least count, so they are negative."""
    slowest = [measured.seconds_a_step, measured.seconds_a_byte, measured.latency_s, measured.num_values]
    least = [-measured.seconds_a_round, -measured.seconds_of_gradients]
    return np.array([*slowest, *least, float(measured.exchanges_gradients)])


def rung_from(answer: Array) -> Rung:
    """Returns the rung of the root's answer."""
    steps, bits, ratio, bytes_a_value, exchanges_gradients, *_ = answer.tolist()
    return Rung(
        steps=int(steps),
        bits=int(bits),
        ratio=ratio,
        bytes_a_value=bytes_a_value,
        exchanges_gradients=bool(exchanges_gradients),
    )


class Planner:
    """The root's: one controller, which plans for all. Any thread may call it."""

    def __init__(self, controller: Controller) -> None:
        self.controller = controller
        self._lock = threading.Lock()

    def answer(self, largest: Array) -> Array:
        """Returns the answer to what the workers brought, float64 [7]."""
        seconds_a_step, seconds_a_byte, latency_s, num_values, a_round, in_all, gradients = largest.tolist()
        measured = Measured(
            seconds_a_step=seconds_a_step,
            seconds_a_byte=seconds_a_byte,
            latency_s=latency_s,
            num_values=int(num_values),
            seconds_a_round=-a_round,
            seconds_of_gradients=-in_all,
            exchanges_gradients=bool(gradients),
        )
        with self._lock:
            rung = self.controller.plan(measured)
        answer = [rung.steps, rung.bits, rung.ratio, rung.bytes_a_value, float(rung.exchanges_gradients)]
        return np.array([*answer, 0.0, 0.0])
