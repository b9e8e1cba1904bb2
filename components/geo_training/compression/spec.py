"""What a user writes as `compression`: a technique, then rules about small units and Zstandard.

Such as `none`, `top_k(ratio=0.015, bits=2)` or `bi_sparse(ratio=0.01) + by_size(bound=5000) + zstd`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..spec import parse_with_rules
from .by_size import BySize
from .techniques import TECHNIQUES, AnyTechnique
from .zstd import ZstdOptions

RULES: Mapping[str, type[Any]] = {"by_size": BySize, "zstd": ZstdOptions}


@dataclass(frozen=True, slots=True)
class Spec:
    """What was chosen.

    Attributes:
        technique: the technique.
        by_size: which units are too small for it; None for the technique's own rule.
        zstd: None where nothing is compressed further.
    """

    technique: AnyTechnique
    by_size: BySize | None = None
    zstd: ZstdOptions | None = None


def parse(text: str) -> Spec:
    """Reads a compression.

    Raises:
        InputError: it is not of the grammar, or a name or value is not allowed; one line with the name or
            option, the value and what is allowed.
    """
    technique, rules = parse_with_rules(text, "compression", TECHNIQUES, RULES)
    return Spec(technique, **rules)
