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
from .placement import MultiGps
from .relay import TsEngine
from .slices import InOrder, Slices

__all__ = ["P3", "RULES", "TECHNIQUES", "InOrder", "Slices", "Transmission", "transmission"]

AnyTechnique: TypeAlias = Fifo | P3
TECHNIQUES: Mapping[str, type[AnyTechnique]] = {"fifo": Fifo, "p3": P3}
RULES: Mapping[str, type[Any]] = {"dgt": Dgt, "multigps": MultiGps, "tsengine": TsEngine}


@dataclass(frozen=True, kw_only=True, slots=True)
class Transmission:
    """What was chosen."""

    technique: AnyTechnique
    """What leaves next."""
    rules: Mapping[str, Any] = field(default_factory=dict)
    """The rules that were written, by name."""

    @property
    def overlaps(self) -> bool:
        """Whether a worker sends while its backward pass computes, and awaits tensor by tensor."""
        return isinstance(self.technique, P3)

    @property
    def multigps(self) -> MultiGps | None:
        """Several roots; None for one."""
        found = self.rules.get("multigps")
        return found if isinstance(found, MultiGps) else None

    @property
    def cannot_enter(self) -> str:
        """Why a worker cannot come anew when the others have begun; empty where it can."""
        if self.multigps is not None:
            return "several roots hold the weights, with multigps; it may with one"
        if "tsengine" in self.rules:
            return "plans that have been made are not told again, with tsengine; it may without"
        if isinstance(self.technique, P3) and not self.technique.rate_mbit:
            return "all agreed on slices at the start; it may with p3(rate_mbit=...)"
        return ""

    def slices(self, slice_bytes: int, least_bytes: int) -> Slices:
        """Returns how tensors are cut, and which pieces are urgent.

        Args:
            slice_bytes: bytes of values that suit the compression.
            least_bytes: from which it encodes them as it does large ones.
        """
        return self.technique.slices(slice_bytes, least_bytes)


def transmission(text: str) -> Transmission:
    """Reads what a user writes, such as `p3(slice_ms=50)`.

    Raises:
        InputError: it is not of the grammar, or a name or value is not allowed.
    """
    technique, rules = parse_with_rules(text, "transmission", TECHNIQUES, RULES)
    return Transmission(technique=technique, rules=rules)
