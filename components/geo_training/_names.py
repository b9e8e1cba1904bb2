"""Choosing an implementation by its name in a literal table."""

from collections.abc import Mapping
from typing import TypeVar

from .._files import InputError

T = TypeVar("T")


def chosen(table: Mapping[str, T], option: str, name: str) -> T:
    """Returns the entry of that name.

    Raises:
        InputError: there is none; names the option, the value and what is allowed.
    """
    if name not in table:
        raise InputError(f"{option} is {name!r}, allowed: {', '.join(sorted(table))}")
    return table[name]
