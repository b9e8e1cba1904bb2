"""In which pieces, and in what order, values travel: a technique, then rules, as a user writes them.

A technique says what leaves next where several values wait for a link (`fifo`, `p3`); rules add to it. Each
rule is a dataclass of its own module, named in `RULES`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from ..spec import parse_with_rules
from .dgt import Dgt
from .p3 import P3, Fifo
from .slices import InOrder, Slices

__all__ = ["RULES", "TECHNIQUES", "InOrder", "Slices", "Transmission", "transmission"]

AnyTechnique: TypeAlias = Fifo | P3
TECHNIQUES: Mapping[str, type[AnyTechnique]] = {"fifo": Fifo, "p3": P3}
RULES: Mapping[str, type[Any]] = {"dgt": Dgt}


@dataclass(frozen=True, kw_only=True, slots=True)
class Transmission:
    """What was chosen."""

    technique: AnyTechnique
    """What leaves next."""
    rules: Mapping[str, Any] = field(default_factory=dict)
    """The rules that were written, by name."""

    def slices(self, slice_bytes: int) -> Slices:
        """Returns how tensors are cut, and which pieces are urgent.

        Args:
            slice_bytes: bytes of values that suit the compression.
        """
        return self.technique.slices(slice_bytes)


def transmission(text: str) -> Transmission:
    """Reads what a user writes, such as `p3(slice_ms=50)`.

    Raises:
        InputError: it is not of the grammar, or a name or value is not allowed.
    """
    technique, rules = parse_with_rules(text, "transmission", TECHNIQUES, RULES)
    return Transmission(technique=technique, rules=rules)
