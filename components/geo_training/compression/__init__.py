"""How values become bytes on a link between sites, in both directions, chosen by what the user writes.

`techniques` names what there is and of what each is made, `spec` reads the user's text. A codec is a file;
whatever wraps one (error feedback, momentum, Zstandard, a choice by role and size) is a compressor again. A
payload says by what it is read, so that `decode` needs neither options nor state.
"""

from collections.abc import Callable
from dataclasses import dataclass

from ..wire.units import DELTA, Unit
from .base import Compressor, Technique
from .blockwise import Blockwise
from .decoding import decode
from .level import Listening
from .per_unit import PerUnit
from .spec import Spec, parse
from .techniques import TECHNIQUES, Auto
from .zstd import Zstandard

__all__ = ["TECHNIQUES", "Compression", "Compressor", "compression", "decode"]


@dataclass(frozen=True, slots=True)
class Compression:
    """The compressors of one link between sites; each has a state of its own."""

    spec: Spec

    @property
    def slice_bytes(self) -> int:
        """Bytes of the values that are best encoded at once."""
        return self.spec.technique.slice_bytes

    @property
    def least_values(self) -> int:
        """Values from which a unit is encoded by the technique, not by its rule for small ones."""
        return (self.spec.by_size or self.spec.technique.size_rule()).bound

    @property
    def is_planned(self) -> bool:
        """Whether bits and ratio follow the plans of the root's controller."""
        return isinstance(self.spec.technique, Auto)

    def listening(self, compressor: Compressor) -> Compressor:
        """Returns what encodes as `compressor` does, and follows plans whose answers it encodes.

        Args:
            compressor: what the node that uses this compression sends down by.
        """
        technique = self.spec.technique
        return Listening(compressor, technique.level) if isinstance(technique, Auto) else compressor

    def up(self) -> Compressor:
        """Returns what encodes towards the root, on one link; any thread may call it."""
        return self._per_unit(lambda technique: technique.towards_root())

    def down(self) -> Compressor:
        """Returns what encodes towards the workers, once for all links of a node; any thread may call it."""
        return self._per_unit(lambda technique: technique.towards_workers())

    def up_blocks(self) -> Blockwise:
        """Returns what encodes the blocks of units towards the root, on one link."""
        return Blockwise(self._chooser(lambda technique: technique.towards_root()))

    def _per_unit(self, make: Callable[[Technique], Compressor]) -> Compressor:
        return PerUnit(self._chooser(make))

    def _chooser(self, make: Callable[[Technique], Compressor]) -> Callable[[Unit], Compressor]:
        gradients, changes = self.spec.technique, self.spec.technique.for_changes()
        rule, zstd = self.spec.by_size or self.spec.technique.size_rule(), self.spec.zstd

        def choose(unit: Unit) -> Compressor:
            small = rule.small_unit(unit)
            chosen = make(changes if unit.role == DELTA else gradients) if small is None else small
            return chosen if zstd is None else Zstandard(chosen, zstd.level)

        return choose


def compression(text: str) -> Compression:
    """Returns the compression that a text such as `top_k(ratio=0.015, bits=2)` names; see `spec`.

    Raises:
        InputError: it names none; says which option, its value and what is allowed.
    """
    return Compression(parse(text))
