"""What a contribution says beside its values, and what its round comes to."""

from dataclasses import dataclass

from .messages import Array


@dataclass(frozen=True, kw_only=True, slots=True)
class Terms:
    """How a contribution takes part in its round."""

    reduction: str
    """Name of the rule that merges."""

    weight: float = 0.0
    """Number of samples behind the values."""

    wait_s: float | None = None
    """Seconds that the round may wait for others; None for the client's `round_timeout_s`."""

    covers: tuple[str, ...] = ()
    """The workers merged in the values; empty for the client's own name."""

    priority: int = 0
    """How urgent the round is on all links, up and down; smaller ones first."""


@dataclass(frozen=True, slots=True)
class Result:
    """What a round came to.

    Attributes:
        values: None when nobody brought any; may be read-only and shared.
        weight: the samples behind it.
        priority: how urgent it is to hand on.
    """

    values: Array | None
    weight: float
    priority: int = 0
