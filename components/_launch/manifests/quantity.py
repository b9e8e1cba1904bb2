"""Kubernetes quantities of memory, as numbers of bytes."""

import re

from ..._files import InputError

_QUANTITY = re.compile(r"(\d+(?:\.\d+)?)([eE][+-]?\d+|[KMGTPE]i|[kMGTPEm]?)")
_FACTORS = {"": 1.0, "m": 1e-3, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18}
_FACTORS |= {f"{letter}i": 1024.0**power for power, letter in enumerate("KMGTPE", start=1)}


def bytes_of(quantity: object, option: str) -> int:
    """Returns the bytes that a quantity such as `8Gi` or `2e9` says.

    Raises:
        InputError: it is no quantity; the message begins with `option`.
    """
    parts = _QUANTITY.fullmatch(str(quantity))
    if not parts:
        raise InputError(f"{option} is {quantity!r}, allowed: a quantity such as 512Mi or 8Gi")
    number, unit = parts.groups()
    if unit in _FACTORS:
        return int(float(number) * _FACTORS[unit])
    return int(float(number + unit))
