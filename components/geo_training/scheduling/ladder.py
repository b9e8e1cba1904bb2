"""What may be given up, and in what order, for fewer bytes a step: the rungs that a controller stands on.

First bits of a value, then steps between two rounds, then the share of the values that is sent: with more
steps training takes some more of them, with few values far more rounds. Each rung needs less of a link than
the one before. Pure.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

FREE_STEPS = 20
"""Steps between two rounds up to which more of them cost next to nothing."""
_BITS = (32, 16, 8, 4, 2)
_RATIOS = (0.3, 0.1, 0.015)
_PLACE_BITS = 12


@dataclass(frozen=True, kw_only=True, slots=True)
class Rung:
    """How workers synchronise, and how values travel between sites."""

    steps: int
    """Steps between two rounds."""
    bits: int
    """Of a value that is sent; 32 for dense FP32, 16 for FP16."""
    ratio: float
    """Share of the values that is sent."""
    bytes_a_value: float
    """Bytes that a value of the model needs on a link, in one direction."""
    exchanges_gradients: bool = False
    """Whether gradients are exchanged in each step, instead of weights after some."""

    @property
    def is_free(self) -> bool:
        """Whether what is given up costs next to nothing: bits, and few steps."""
        return self.ratio == 1.0 and self.steps <= FREE_STEPS


def adaptive_ladder(max_steps: int) -> list[Rung]:
    """Returns the rungs where the controller chooses the compression too.

    Args:
        max_steps: most steps between two rounds.
    """
    rungs = [_rung(1, bits, 1.0) for bits in _BITS]
    rungs += [_rung(steps, _BITS[-1], 1.0) for steps in range(2, max_steps + 1)]
    rungs += [_rung(max_steps, _BITS[-1], ratio) for ratio in _RATIOS]
    return rungs


def steps_ladder(max_steps: int, bytes_a_value: float) -> list[Rung]:
    """Returns the rungs where the compression is given.

    Args:
        max_steps: most steps between two rounds.
        bytes_a_value: bytes that a value needs with it, in one direction.
    """
    return [
        Rung(steps=steps, bits=32, ratio=1.0, bytes_a_value=bytes_a_value)
        for steps in range(1, max_steps + 1)
    ]


def check_ladder(rungs: Sequence[Rung]) -> None:
    """Holds that each rung needs less of a link a step than the one before.

    Raises:
        ValueError: one does not.
    """
    needs = [rung.bytes_a_value / rung.steps for rung in rungs]
    if not rungs or any(after >= before for before, after in pairwise(needs)):
        raise ValueError("every rung must need fewer bytes a step than the one before")


def _rung(steps: int, bits: int, ratio: float) -> Rung:
    places = 0.0 if ratio == 1.0 else min(1.0, ratio * _PLACE_BITS)  # a bitmap where that is less
    return Rung(steps=steps, bits=bits, ratio=ratio, bytes_a_value=(ratio * bits + places) / 8)
