"""What the step asks of a kind of trained model: one implementation for GNNs, one for models over rows.

Knows nothing of either.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from .verify import Agreement

DRAWN = (
    "Compared on {units} drawn at random: the real ones stay at their sites. That the files give what the "
    "trained model gives is shown for such {units} alone."
)
"""Warning about what an export was checked on."""


@dataclass(frozen=True, kw_only=True)
class Words:
    """What the report and the exported README say of a kind of model in words of its own."""

    readme: str
    """The exported model's README."""
    units: str
    """What was compared: `nodes` or `rows`."""
    how: str
    """How the files were compared with the trained model."""
    head: Sequence[str]
    """Heads of the table of cases."""
    cases: Sequence[Sequence[object]]
    """Its rows, one a case."""
    use: str
    """How the files are used."""
    warnings: Sequence[str]
    """What the user should know."""


class Exporter(Protocol):
    """A trained model with data that fits it, both read and checked when it is made.

    The methods are called once each, in this order, by the step alone.
    """

    @property
    def formats(self) -> Sequence[str]:
        """Formats that were asked for, and that such a model can have."""

    def write(self, folder: Path, work: Path) -> dict[str, str]:
        """Writes weights, code and formats; returns why formats that were asked for are not there.

        Args:
            folder: the exported model's folder.
            work: a folder for what processes are given and give.
        """

    def verify(self, folder: Path, formats: Sequence[str], work: Path) -> dict[str, Agreement]:
        """Loads again what was written, and returns how each file agrees, by its name in `FILES`.

        Args:
            folder: the exported model's folder.
            formats: those that were written.
            work: a folder for what processes are given and give.

        Raises:
            OutputsDiffer: a file gives other outputs.
            ProcessFailed: a file could not be loaded and run.
        """

    def card(
        self, files: Mapping[str, tuple[Path, Agreement]], not_exported: Mapping[str, str]
    ) -> dict[str, Any]:
        """Returns the model card, as JSON."""

    def words(self, card: Mapping[str, Any]) -> Words:
        """Returns what to say of the model."""
