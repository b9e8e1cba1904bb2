"""How the sites tell each other what their tables are like, each to all, through the hand-over."""

import time
from collections.abc import Mapping
from typing import Any

from ..._launch.hand_over import HandOver
from .schema import SiteSchema, joined

RETRY_S = 0.5
"""Seconds between two looks for what the other sites tell."""


def agreed_labels(orders: Mapping[str, Any], own: SiteSchema) -> tuple[str, ...]:
    """Returns the names of all sites' classes, once all sites have told theirs.

    Args:
        orders: of the site, see `pod_site`.
        own: what it tells.

    Raises:
        InputError: the sites' tables are unlike.
        TimeoutError: a site told nothing in time; it is named.
    """
    hand_over, timeout_s = HandOver(orders["hand_over"]), orders["start_timeout_s"]
    told = tell_and_await(hand_over, orders["site"], own, orders["sites"], timeout_s=timeout_s)
    return joined(told).label_names


def tell_and_await(
    hand_over: HandOver, site: str, own: SiteSchema, sites: Mapping[str, str], *, timeout_s: float
) -> dict[str, SiteSchema]:
    """Tells the others what a site has, and returns what all sites told, once all have.

    Args:
        hand_over: the launch's.
        site: who tells.
        own: what it tells.
        sites: all sites, in the order of the result.
        timeout_s: how long the others may take.

    Raises:
        TimeoutError: one told nothing in time; it is named.
    """
    hand_over.put_text(_name(site), own.to_json())
    deadline, found = time.monotonic() + timeout_s, {}
    while missing := [name for name in sites if name not in found]:
        for name in missing:
            if (text := hand_over.get_text(_name(name))) is not None:
                found[name] = SiteSchema.from_json(text)
        if len(found) < len(sites):
            if time.monotonic() > deadline:
                absent = next(name for name in sites if name not in found)
                raise TimeoutError(f"site {absent!r} has not told its labels after {timeout_s:g} s")
            time.sleep(RETRY_S)
    return {name: found[name] for name in sites}


def _name(site: str) -> str:
    return f"schemas/{site.encode().hex()}.json"  # a site's name may hold anything
