"""What a node of the tree is told about itself."""

from dataclasses import dataclass, field

from ..metrics import UNOBSERVED, Observer
from .presence import FaultRules


@dataclass(frozen=True, kw_only=True, slots=True)
class AggregatorSettings:
    """Who the node is and how long it waits."""

    name: str
    """The node."""

    run: str
    """The run; peers of another are refused."""

    children: frozenset[str]
    """Nodes that may join; when all have left the node is done."""

    observer: Observer = UNOBSERVED
    """Is told what comes and goes."""

    holds_back: bool = False
    """Whether who is far ahead of the others waits; only where every round waits for all (`room`)."""

    faults: FaultRules = field(default_factory=FaultRules)
    """What becomes of children that are silent, dead or come anew."""
