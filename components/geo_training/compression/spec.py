"""What a user writes as `compression`: a technique with its options, then rules.

Grammar::

    compression  term { "+" term }          a technique first, then each rule at most once, in any order
    term         name [ "(" [ option { "," option } ] ")" ]
    option       name "=" value

such as `none`, `top_k(ratio=0.015, bits=2)` or `bi_sparse(ratio=0.01) + by_size(bound=5000) + zstd(level=5)`.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from difflib import get_close_matches
from typing import Any, cast

from ..._files import InputError
from .by_size import BySize
from .options import Options, not_allowed
from .techniques import TECHNIQUES, AnyTechnique
from .zstd import ZstdOptions

_TERM = re.compile(r"\s*([\w.-]+)\s*(?:\(([^()]*)\)\s*)?(\+|$)")
_RULES: Mapping[str, type[BySize | ZstdOptions]] = {BySize.name: BySize, ZstdOptions.name: ZstdOptions}


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
        InputError: it is not of the grammar, or a name or value is not allowed; one line with the option, the
            value and what is allowed.
    """
    (name, options), *rest = _terms(text)
    technique = _build(_chosen(TECHNIQUES, f"compression is {name!r}", name), options)
    rules: dict[str, Any] = {}
    for name, options in rest:
        rule = _build(_chosen(_RULES, f"compression {text!r} has the rule {name!r}", name), options)
        if name in rules:
            raise InputError(f"compression {text!r} has the rule {name!r} twice, allowed: once")
        rules[name] = rule
    return Spec(cast(AnyTechnique, technique), **rules)


def _terms(text: str) -> Iterator[tuple[str, dict[str, str]]]:
    position, more = 0, "+"
    while more:
        term = _TERM.match(text, position) if isinstance(text, str) else None
        if term is None:
            raise InputError(
                f"compression is {text!r}, allowed: name(option=value, ...), then + and a rule "
                f"({', '.join(_RULES)})"
            )
        name, options, more = term.groups()
        yield name, _options(name, options or "")
        position = term.end()


def _options(name: str, text: str) -> dict[str, str]:
    options: dict[str, str] = {}
    for part in filter(None, map(str.strip, text.split(","))):
        option, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals or not option or not value:
            raise InputError(f"compression {name}({part}): allowed is option=value")
        if option in options:
            raise InputError(f"compression {name} has the option {option!r} twice, allowed: once")
        options[option] = value
    return options


def _build(kind: type[Options], texts: Mapping[str, str]) -> Options:
    allowed = {each.name: each.metadata["allowed"] for each in fields(kind)}
    values = {}
    for option, text in texts.items():
        rule = _chosen(allowed, f"compression {kind.name} has the option {option!r}", option)
        try:
            values[option] = rule.parse(text)
        except ValueError as error:
            raise not_allowed(kind.name, option, text, rule) from error
    return kind(**values)


def _chosen(table: Mapping[str, Any], what: str, name: str) -> Any:
    if name in table:
        return table[name]
    raise InputError(f"{what}, allowed: {', '.join(sorted(table)) or 'no option'}{_nearest(name, table)}")


def _nearest(name: str, names: Iterable[str]) -> str:
    near = get_close_matches(name, names, n=1)
    return f" (nearest: {near[0]})" if near else ""
