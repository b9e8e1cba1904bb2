"""IPv4 addresses of pods by their DNS names, which exist some time after the pods."""

import socket
import time
from collections.abc import Callable, Mapping

from .._files import InputError

RETRY_S = 0.5
"""Seconds between two questions for the same name."""
_SHOWN = 5


def resolve(
    hosts: Mapping[str, tuple[str, ...]],
    known: Mapping[str, str] | None,
    *,
    timeout_s: float,
    lookup: Callable[[str], str | None] | None = None,
) -> dict[str, tuple[str, ...]]:
    """Returns the addresses of all pods, once all of them have one.

    Args:
        hosts: the DNS names of each group's pods, in order.
        known: address by name, in the place of DNS; None asks DNS.
        timeout_s: seconds to wait for the last one.
        lookup: returns the address of a name, or None; asks DNS by default.

    Raises:
        InputError: `known` lacks a name.
        TimeoutError: some name did not resolve in time.
    """
    names = [name for group in hosts.values() for name in group]
    if known is not None:
        if absent := [name for name in names if name not in known]:
            raise InputError(f"addresses given lack {_some(absent)}")
        found = dict(known)
    else:
        found = _await(names, timeout_s, lookup or ipv4_of)
    return {group: tuple(found[name] for name in names) for group, names in hosts.items()}


def ipv4_of(name: str) -> str | None:
    """Returns the IPv4 address that a name resolves to now, or None."""
    try:
        found = socket.getaddrinfo(name, None, family=socket.AF_INET, type=socket.SOCK_STREAM)
    except socket.gaierror:
        return None
    return str(found[0][4][0]) if found else None


def _await(names: list[str], timeout_s: float, lookup: Callable[[str], str | None]) -> dict[str, str]:
    deadline = time.monotonic() + timeout_s
    found: dict[str, str] = {}
    while missing := [name for name in names if name not in found]:
        for name in missing:
            if (address := lookup(name)) is not None:
                found[name] = address
        if len(found) < len(set(names)):
            if time.monotonic() > deadline:
                absent = [name for name in names if name not in found]
                raise TimeoutError(f"{_some(absent)} did not resolve to an address in {timeout_s:g} s")
            time.sleep(RETRY_S)
    return found


def _some(names: list[str]) -> str:
    rest = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {rest} more" if rest > 0 else "")
