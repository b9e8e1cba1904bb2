"""Choices that a user writes as text, `name(option=value, ...)`: read into checked dataclasses, and back.

Grammar::

    spec    name [ "(" [ option { "," option } ] ")" ]
    option  name "=" value
    value   word | quoted | spec
    name, word   letters, digits and `_ . + -`
    quoted       a string of JSON

    with rules   spec { "+" spec }      what is chosen, then each rule at most once; no `+` in these names

such as `sgd`, `adam(rate=0.001, beta1=0.9)`, `wrapped(inner=adam(rate=0.1), label="two words")` or, with
rules, `scaled(by=1e+3) + rounded(digits=2)`.

A table maps each name to a frozen dataclass; the options are its fields, a trailing `_` left out (`lambda_`
is the option `lambda`), of type `int`, `float`, `bool`, `str` or another such dataclass. `Annotated` adds
rules (an option that may be left out for nothing at all is `Kind | None` and defaults to None)::

    Share = Annotated[float, Interval(low=0, high=1)]

    @dataclass(frozen=True, kw_only=True, slots=True)
    class Wrapped:
        inner: Annotated[Inner, Nested(INNERS)]
        share: Share = 0.5

        def __post_init__(self) -> None:
            check(self)

Knows nothing of what the choices mean.
"""

import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, Field, dataclass, fields
from difflib import get_close_matches
from typing import Annotated, Any, Protocol, TypeVar, get_args, get_origin, get_type_hints

from .._files import InputError

T = TypeVar("T")
R = TypeVar("R")

DEEPEST = 16
"""Specs inside one another."""

_WORD = re.compile(r"[\w.+-]+")
_NAME = re.compile(r"[\w.-]+")
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"')
_SPACE = re.compile(r"\s*")
_NEAR = 0.4
"""Likeness, 0 to 1, from which a name is offered for another: `rate` for `learning_rate` is 0.47."""


class Allowed(Protocol):
    """A rule for the values of an option."""

    def holds(self, value: Any) -> bool:
        """Tells whether a value of the option's type is allowed; `str()` of the rule says which are."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Interval:
    """Numbers of a range, with its ends where nothing else is said."""

    low: float = -math.inf
    high: float = math.inf
    with_low: bool = True
    with_high: bool = True

    def holds(self, value: Any) -> bool:
        """See `Allowed`."""
        above = self.low <= value if self.with_low else self.low < value
        return bool(above and (value <= self.high if self.with_high else value < self.high))

    def __str__(self) -> str:
        ends = []
        if self.low > -math.inf or not self.with_low:
            ends.append(f"{'at least' if self.with_low else 'above'} {_number(self.low)}")
        if self.high < math.inf or not self.with_high:
            ends.append(f"{'at most' if self.with_high else 'below'} {_number(self.high)}")
        return " and ".join(ends)


def _number(end: float) -> str:
    return str(end) if isinstance(end, int) else f"{end:g}"


@dataclass(frozen=True, slots=True)
class OneOf:
    """One of some values."""

    values: tuple[str | int | float, ...]

    def holds(self, value: Any) -> bool:
        """See `Allowed`."""
        return value in self.values

    def __str__(self) -> str:
        return f"one of {', '.join(map(str, self.values))}"


@dataclass(frozen=True, slots=True)
class Nested:
    """A spec of a table of its own."""

    table: Mapping[str, type[Any]]

    def holds(self, value: Any) -> bool:
        """See `Allowed`."""
        return type(value) in self.table.values()

    def __str__(self) -> str:
        return f"one of {', '.join(sorted(self.table))}"


def parse(text: str, what: str, table: Mapping[str, type[T]]) -> T:
    """Reads a choice.

    Args:
        text: what the user wrote.
        what: the option that it is the value of; errors begin with it.
        table: what may be chosen, by name.

    Raises:
        InputError: the text is not of the grammar, or a name or value is not allowed; one line with the
            option, its value, what is allowed and, of a name, the nearest.
    """
    _hold_text(text, what)
    try:
        return _build(_Reader(text).whole(), table)
    except InputError as error:
        raise InputError(f"{what} {text!r}: {error}") from error


def parse_with_rules(
    text: str, what: str, table: Mapping[str, type[T]], rules: Mapping[str, type[R]]
) -> tuple[T, dict[str, R]]:
    """Reads a choice and the rules that follow it, in any order, each after a `+`.

    Args:
        text: what the user wrote.
        what: the option that it is the value of; errors begin with it.
        table: what may be chosen, by name.
        rules: what may follow, by name.

    Returns:
        The choice, and the rules that were written, by name.

    Raises:
        InputError: see `parse`; or a rule is written twice.
    """
    _hold_text(text, what)
    try:
        first, *rest = _Reader(text).terms()
        if first.text in rules.keys() - table.keys():
            raise InputError(f"rule {first.text} follows a name, as in {next(iter(table))} + {first.text}")
        chosen, found = _build(first, table), dict[str, R]()
        for written in rest:
            if written.text in found:
                raise InputError(f"rule {written.text} is given twice, allowed: once")
            found[written.text] = _build(written, rules, "rule")
        return chosen, found
    except InputError as error:
        raise InputError(f"{what} {text!r}: {error}") from error


def _hold_text(text: object, what: str) -> None:
    if not isinstance(text, str):
        raise InputError(f"{what} is {text!r}, allowed: text, as in name(option=value, ...)")


def render(options: object, table: Mapping[str, type[Any]]) -> str:
    """Returns the canonical text of a choice: every option but those that are None, also at their defaults.

    A record that holds it says the same when defaults have changed; `parse` makes an equal object of it.

    Raises:
        KeyError: the table has no such type.
    """
    names = {kind: name for name, kind in table.items()}
    parts = [
        f"{option}={_text(getattr(options, declared.field.name), declared)}"
        for option, declared in _declared(type(options)).items()
        if getattr(options, declared.field.name) is not None
    ]
    return f"{names[type(options)]}({', '.join(parts)})" if parts else names[type(options)]


def check(options: object) -> None:
    """Holds every field of a dataclass against its type and rules; what its `__post_init__` calls.

    Raises:
        InputError: a value that is not allowed; names the option, the value and what is.
    """
    for option, declared in _declared(type(options)).items():
        value = getattr(options, declared.field.name)
        if value is None and declared.may_be_none:
            continue
        if not _is_a(value, declared.kind) or not all(rule.holds(value) for rule in declared.rules):
            raise _not_allowed(option, value, declared)


@dataclass(frozen=True, slots=True)
class _Declared:
    field: Field[Any]
    kind: type[Any]
    rules: tuple[Allowed, ...]

    @property
    def is_required(self) -> bool:
        return self.field.default is MISSING and self.field.default_factory is MISSING

    @property
    def may_be_none(self) -> bool:
        return self.field.default is None

    @property
    def table(self) -> Mapping[str, type[Any]] | None:
        return next((rule.table for rule in self.rules if isinstance(rule, Nested)), None)

    def __str__(self) -> str:
        listed = any(isinstance(rule, OneOf | Nested) for rule in self.rules)
        kind = [] if listed else [_KINDS[self.kind]]
        return " ".join([*kind, *map(str, self.rules)])


def _declared(kind: type[Any]) -> dict[str, _Declared]:
    hints, declared = get_type_hints(kind, include_extras=True), {}
    for each in fields(kind):
        hint, *rules = get_args(hints[each.name]) if _is_annotated(hints[each.name]) else (hints[each.name],)
        declared[each.name.rstrip("_")] = _Declared(each, hint, tuple(rules))
    return declared


def _is_annotated(hint: Any) -> bool:
    return get_origin(hint) is Annotated


_KINDS: Mapping[type[Any], str] = {
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    str: "text",
}
_BOOLEANS: Mapping[str, bool] = {"true": True, "false": False}


def _is_a(value: object, kind: type[Any]) -> bool:
    if isinstance(value, bool) or kind not in (int, float):
        return isinstance(value, kind) and (isinstance(value, bool) == (kind is bool))
    return isinstance(value, int) or (kind is float and isinstance(value, float) and not math.isnan(value))


def _not_allowed(option: str, value: object, declared: _Declared) -> InputError:
    return InputError(f"{option} is {value!r}, allowed: {declared}")


@dataclass(frozen=True, slots=True)
class _Written:
    """A value as it was written: a word, a quoted text, or a name with options."""

    text: str
    is_quoted: bool = False
    options: Mapping[str, "_Written"] | None = None

    def __repr__(self) -> str:
        return repr(self.text) if self.options is None else f"'{self.text}(...)'"


class _Reader:
    """Reads a text from left to right; errors name the column."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def whole(self) -> _Written:
        written = self._value(0)
        if self._at < len(self._text):
            raise self._expected("the end")
        return written

    def terms(self) -> list[_Written]:
        terms = [self._term()]
        while self._at < len(self._text):
            if not self._symbol("+"):
                raise self._expected("'+' or the end")
            terms.append(self._term())
        return terms

    def _term(self) -> _Written:
        name = self._take(_NAME)
        if name is None:
            raise self._expected("a name")
        return _Written(name, options=self._options(0) if self._symbol("(") else None)

    def _value(self, depth: int) -> _Written:
        if depth == DEEPEST:
            raise InputError(f"nested {depth} deep at column {self._at + 1}, allowed: {DEEPEST - 1}")
        if (quoted := self._take(_QUOTED)) is not None:
            try:
                return _Written(json.loads(quoted), is_quoted=True)
            except ValueError as error:
                raise InputError(f"{quoted!r} is not a string of JSON") from error
        name = self._word("a name or value")
        return _Written(name, options=self._options(depth) if self._symbol("(") else None)

    def _options(self, depth: int) -> dict[str, _Written]:
        options: dict[str, _Written] = {}
        while not self._symbol(")"):
            if options and not self._symbol(","):
                raise self._expected("',' or ')'")
            option = self._word("the name of an option")
            if not self._symbol("="):
                raise self._expected("'='")
            if option in options:
                raise InputError(f"{option} is given twice, allowed: once")
            options[option] = self._value(depth + 1)
        return options

    def _word(self, what: str) -> str:
        word = self._take(_WORD)
        if word is None:
            raise self._expected(what)
        return word

    def _symbol(self, symbol: str) -> bool:
        return self._take(re.compile(re.escape(symbol))) is not None

    def _take(self, pattern: re.Pattern[str]) -> str | None:
        self._skip_space()
        found = pattern.match(self._text, self._at)
        if found is None:
            return None
        self._at = found.end()
        self._skip_space()
        return found.group()

    def _skip_space(self) -> None:
        space = _SPACE.match(self._text, self._at)
        assert space is not None
        self._at = space.end()

    def _expected(self, what: str) -> InputError:
        return InputError(f"{what} is expected at column {self._at + 1}, as in name(option=value, ...)")


def _build(written: _Written, table: Mapping[str, type[T]], role: str = "name") -> T:
    if written.is_quoted:
        raise InputError(f"{written.text!r} is quoted, allowed: a name, as in name(option=value, ...)")
    kind = _entry(table, role, written.text)
    declared = _declared(kind)
    values = {}
    for option, value in (written.options or {}).items():
        of_option = _entry(declared, f"option of {written.text}", option)
        values[of_option.field.name] = _value(option, value, of_option)
    missing = [name for name, each in declared.items() if each.is_required and each.field.name not in values]
    if missing:
        raise InputError(f"{written.text} needs {', '.join(f'{name}=' for name in missing)}")
    return kind(**values)


def _value(option: str, written: _Written, declared: _Declared) -> Any:
    if declared.table is not None:
        try:
            return _build(written, declared.table)
        except InputError as error:
            raise InputError(f"{option}: {error}") from error
    if written.options is not None or (written.is_quoted and declared.kind is not str):
        raise _not_allowed(option, written, declared)
    try:
        if declared.kind is bool:
            return _BOOLEANS[written.text.lower()]
        return declared.kind(written.text)
    except (ValueError, KeyError) as error:
        raise _not_allowed(option, written, declared) from error


def _text(value: Any, declared: _Declared) -> str:
    if declared.table is not None:
        return render(value, declared.table)
    if declared.kind is str:
        return value if _WORD.fullmatch(value) else json.dumps(value)
    return str(value).lower() if declared.kind is bool else repr(declared.kind(value))


def _entry(table: Mapping[str, T], what: str, name: str) -> T:
    if name in table:
        return table[name]
    raise InputError(
        f"{what} is {name!r}, allowed: {', '.join(sorted(table)) or 'none'}{_nearest(name, table)}"
    )


def _nearest(name: str, names: Iterable[str]) -> str:
    near = get_close_matches(name.lower(), names, n=1, cutoff=_NEAR)
    return f"; nearest: {near[0]}" if near else ""
