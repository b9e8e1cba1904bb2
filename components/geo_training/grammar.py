"""Reads what a user writes as `compression` or `synchronization`: a technique with its options, then rules.

Grammar::

    parameter  term { "+" term }            a technique first, then each rule at most once, in any order
    term       name [ "(" [ option { "," option } ] ")" ]
    option     name "=" value

such as `top_k(ratio=0.015, bits=2)` or `hfa(k1=20, k2=10) + outer(momentum=0.9)`. Knows no technique.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields
from difflib import get_close_matches
from typing import Any, TypeVar

from .._files import InputError
from .options import Options, not_allowed

T = TypeVar("T")
_TERM = re.compile(r"\s*([\w.-]+)\s*(?:\(([^()]*)\)\s*)?(\+|$)")


def read(
    what: str, text: str, techniques: Mapping[str, type[Options]], rules: Mapping[str, type[Options]]
) -> tuple[Any, dict[str, Any]]:
    """Returns the technique and the rules by name.

    Args:
        what: name of the parameter.
        text: what the user wrote.
        techniques: option classes by the name of the technique.
        rules: option classes by the name of the rule.

    Raises:
        InputError: it is not of the grammar, or a name or value is not allowed; one line with the name or
            option, the value and what is allowed.
    """
    if not isinstance(text, str):
        raise InputError(f"{what} is {text!r}, allowed: text such as name(option=value) + rule(option=value)")
    (name, options), *rest = _terms(what, text, rules)
    technique = _build(_chosen(techniques, f"{what} is {name!r}", name), options)
    found: dict[str, Any] = {}
    for name, options in rest:
        rule = _build(_chosen(rules, f"{what} {text!r} has the rule {name!r}", name), options)
        if name in found:
            raise InputError(f"{what} {text!r} has the rule {name!r} twice, allowed: once")
        found[name] = rule
    return technique, found


def _terms(what: str, text: str, rules: Iterable[str]) -> Iterator[tuple[str, dict[str, str]]]:
    position, more = 0, "+"
    while more:
        term = _TERM.match(text, position)
        if term is None:
            raise InputError(
                f"{what} is {text!r}, allowed: name(option=value, ...), then + and a rule "
                f"({', '.join(rules)})"
            )
        name, options, more = term.groups()
        yield name, _options(f"{what} {name}", options or "")
        position = term.end()


def _options(where: str, text: str) -> dict[str, str]:
    options: dict[str, str] = {}
    for part in filter(None, map(str.strip, text.split(","))):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals or not name or not value:
            raise InputError(f"{where}({part}): allowed is option=value")
        if name in options:
            raise InputError(f"{where} has the option {name!r} twice, allowed: once")
        options[name] = value
    return options


def _build(kind: type[Options], texts: Mapping[str, str]) -> Options:
    allowed = {each.name: each.metadata["allowed"] for each in fields(kind)}
    values = {}
    for name, text in texts.items():
        rule = _chosen(allowed, f"{kind.what} {kind.name} has the option {name!r}", name)
        try:
            values[name] = rule.parse(text)
        except ValueError as error:
            raise not_allowed(kind, name, text, rule) from error
    return kind(**values)


def _chosen(table: Mapping[str, T], what: str, name: str) -> T:
    if name in table:
        return table[name]
    near = get_close_matches(name, table, n=1)
    hint = f" (nearest: {near[0]})" if near else ""
    raise InputError(f"{what}, allowed: {', '.join(sorted(table)) or 'no option'}{hint}")
