"""Options that a user writes as text: their types, what is allowed, and the error that says so."""

from dataclasses import dataclass, field, fields
from typing import ClassVar, Protocol, TypeVar

from .._files import InputError

T = TypeVar("T")

COMPRESSION = "compression"
SYNCHRONIZATION = "synchronization"


class Allowed(Protocol):
    """What an option may be."""

    def parse(self, text: str) -> object:
        """Returns the value that a text stands for.

        Raises:
            ValueError: it stands for none.
        """

    def holds(self, value: object) -> bool:
        """Tells whether a value is allowed."""


@dataclass(frozen=True, slots=True)
class Number:
    """A number of a range."""

    low: float
    high: float
    without_low: bool = False

    def parse(self, text: str) -> object:
        """See `Allowed`."""
        return float(text)

    def holds(self, value: object) -> bool:
        """See `Allowed`."""
        if not isinstance(value, int | float) or isinstance(value, bool):
            return False
        return self.low <= value <= self.high and not (self.without_low and value == self.low)

    def __str__(self) -> str:
        return f"a number {'above' if self.without_low else 'from'} {self.low:g} to {self.high:g}"


@dataclass(frozen=True, slots=True)
class Whole:
    """A whole number of a range."""

    low: int
    high: int

    def parse(self, text: str) -> object:
        """See `Allowed`."""
        return int(text)

    def holds(self, value: object) -> bool:
        """See `Allowed`."""
        return type(value) is int and self.low <= value <= self.high

    def __str__(self) -> str:
        return f"a whole number from {self.low} to {self.high}"


@dataclass(frozen=True, slots=True)
class OneOf:
    """One of some values."""

    values: tuple[str | int, ...]

    def parse(self, text: str) -> object:
        """See `Allowed`."""
        return type(self.values[0])(text)

    def holds(self, value: object) -> bool:
        """See `Allowed`."""
        return value in self.values

    def __str__(self) -> str:
        return f"one of {', '.join(map(str, self.values))}"


def option(default: T, allowed: Allowed) -> T:
    """Declares a field of an `Options` class."""
    return field(default=default, metadata={"allowed": allowed})


@dataclass(frozen=True, kw_only=True, slots=True)
class Options:
    """Base of what has options; a subclass declares each by `option`.

    Raises:
        InputError: a value that is not allowed; names the option, the value and what is.
    """

    what: ClassVar[str]
    """The parameter that it is written in, such as `compression`."""
    name: ClassVar[str]
    """What the user writes."""

    def __post_init__(self) -> None:
        """Checks the values."""
        for each in fields(self):
            value = getattr(self, each.name)
            if not each.metadata["allowed"].holds(value):
                raise not_allowed(type(self), each.name, value, each.metadata["allowed"])


def not_allowed(kind: type[Options], option_name: str, value: object, allowed: Allowed) -> InputError:
    """Returns the error of a value that an option may not have."""
    return InputError(f"{kind.what} {kind.name}({option_name}={value}): allowed is {allowed}")
