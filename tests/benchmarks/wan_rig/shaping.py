"""Limits the rate of each pair of endpoints, each way, where packets leave an endpoint.

An endpoint's device gets a hierarchical token bucket (htb) with one class for each endpoint that it sends to,
and a u32 filter that sorts packets into it by destination. A class holds back only its own packets: pairs are
independent of each other, so that a relay can go round a slow one.
"""

from collections.abc import Mapping

from .execute import execute
from .links import ROOT, Links, Rates

DEVICE = "wan0"
"""An endpoint's device, in its namespace."""

_AMPLE = 1e11
"""Bits a second of a class without a limit."""
_QUEUE_S = 0.1
_SHORTEST_QUEUE = 64 * 1024
"""A queue holds what its link carries in `_QUEUE_S`, but at least these bytes."""


def install(
    namespaces: Mapping[str, str], addresses: Mapping[str, str], links: Links, hub_device: str
) -> None:
    """Shapes all links as they are at the start.

    Args:
        namespaces: name of each endpoint's namespace, and of the hub's as `hub`.
        addresses: address of each endpoint.
        links: the network.
        hub_device: the hub's device that leads to the root.
    """
    if not links.shaped:
        return
    for source in links.endpoints:
        _batch(namespaces[source], installation(source, addresses, links))
    if links.root_rate is not None:
        _batch(namespaces["hub"], _single(hub_device, links.root_rate))


def change(namespaces: Mapping[str, str], links: Links, rates: Rates) -> None:
    """Gives the links new rates, without losing what waits in their queues.

    Args:
        namespaces: name of each endpoint's namespace.
        links: the network.
        rates: one block of its schedule.
    """
    for source in links.endpoints:
        others = _others(source, links)
        _batch(namespaces[source], [_class("change", source, to, links, rates) for to in others])


def installation(source: str, addresses: Mapping[str, str], links: Links) -> list[str]:
    """Returns the lines for `tc` that shape what one endpoint sends."""
    rates = links.schedule[0][1]
    total = _total(source, links)
    lines = [
        f"qdisc add dev {DEVICE} root handle 1: htb default 0",
        f"class add dev {DEVICE} parent 1: classid 1:1 htb rate {total:.0f} quantum 1514",
    ]
    for to in _others(source, links):
        number = _number(to, links)
        limit = (
            max(_SHORTEST_QUEUE, int(_QUEUE_S * _limit(rates[source, to]) / 8)) if rates[source, to] else None
        )
        lines += [
            _class("add", source, to, links, rates),
            f"qdisc add dev {DEVICE} parent 1:{number} bfifo limit {limit or 2**24}",
            f"filter add dev {DEVICE} parent 1: protocol ip prio 1 u32 "
            f"match ip dst {addresses[to]}/32 flowid 1:{number}",
        ]
    return lines


def _class(verb: str, source: str, to: str, links: Links, rates: Rates) -> str:
    total, own = _total(source, links), _limit(rates[source, to])
    # A class borrows above its own rate only: under a common limit, its own rate is a share of that.
    share = min(own, total / (len(links.endpoints) - 1))
    return (
        f"class {verb} dev {DEVICE} parent 1:1 classid 1:{_number(to, links)} "
        f"htb rate {share:.0f} ceil {min(own, total):.0f} quantum 1514"
    )


def _single(device: str, rate: float) -> list[str]:
    limit = max(_SHORTEST_QUEUE, int(_QUEUE_S * rate / 8))
    return [
        f"qdisc add dev {device} root handle 1: htb default 1",
        f"class add dev {device} parent 1: classid 1:1 htb rate {rate:.0f} quantum 1514",
        f"qdisc add dev {device} parent 1:1 bfifo limit {limit}",
    ]


def _others(source: str, links: Links) -> list[str]:
    return [name for name in links.endpoints if name != source]


def _number(endpoint: str, links: Links) -> int:
    """Class of what goes to an endpoint; 1 is the class above all."""
    return links.endpoints.index(endpoint) + 10


def _limit(rate: float | None) -> float:
    return _AMPLE if rate is None else rate


def _total(source: str, links: Links) -> float:
    return _limit(links.root_rate) if source == ROOT else _AMPLE


def _batch(namespace: str, lines: list[str]) -> None:
    execute(["tc", "-n", namespace, "-batch", "-"], "".join(f"{line}\n" for line in lines))
