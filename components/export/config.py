"""What can be chosen about an export."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .._files import InputError
from ..ingest.config import MAX_SEED

FORMATS = ("torchscript", "onnx")
FRAMEWORK_FORMATS: Mapping[str, tuple[str, ...]] = {"torch": FORMATS, "mxnet": ("onnx",)}
"""What a model can be written as beside its own weights, by framework."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ExportConfig:
    """How a trained model is exported and checked.

    Raises:
        InputError: a value that is not allowed; the message names the option, the value and what is.
    """

    formats: Sequence[str] = FORMATS
    """Formats to write, `torchscript` and `onnx`; weights and model card are always written. The default is
    all that the model's framework has."""
    tolerance: float = 1e-4
    """Largest difference of an output, between exported and trained model, that passes."""
    verify_nodes: int = 256
    """Real nodes or rows, those of the test split first, on which the two are compared."""
    seed: int = 0
    """Seed of their choice."""
    model_name: str = "gnn"
    """Name that model servers know the model by."""
    timeout_s: int = 1800
    """Seconds after which running what was written is ended as failed."""

    def __post_init__(self) -> None:
        """Checks the values."""
        known = all(name in FORMATS for name in self.formats) and not isinstance(self.formats, str)
        once = known and len(set(self.formats)) == len(self.formats)
        _check("formats", self.formats, once, f"a list of {' and '.join(FORMATS)}, each at most once")
        _check("tolerance", self.tolerance, 0 < self.tolerance < float("inf"), "above 0 and finite")
        _check("verify_nodes", self.verify_nodes, self.verify_nodes >= 1, "at least 1")
        named = re.fullmatch(r"[a-z]([-a-z0-9]{0,38}[a-z0-9])?", self.model_name) is not None
        _check("model_name", self.model_name, named, "at most 40 of a-z, 0-9 and -, from a letter on")
        _check("seed", self.seed, 0 <= self.seed <= MAX_SEED, f"0 to {MAX_SEED}")
        _check("timeout_s", self.timeout_s, self.timeout_s >= 1, "at least 1")

    def formats_of(self, framework: str) -> tuple[str, ...]:
        """Returns the formats to write of a model of a framework: those asked for, by default all it has.

        Args:
            framework: `torch` or `mxnet`.

        Raises:
            InputError: a format that was asked for is not the framework's.
        """
        allowed = FRAMEWORK_FORMATS[framework]
        if tuple(self.formats) == FORMATS:
            return allowed
        for name in self.formats:
            _check("formats", self.formats, name in allowed, f"among {', '.join(allowed)} for {framework}")
        return tuple(self.formats)


def _check(option: str, value: object, is_allowed: bool, allowed: str) -> None:
    if not is_allowed:
        raise InputError(f"{option} {value!r}: must be {allowed}")
