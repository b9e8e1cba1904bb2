"""Which choices go together."""

import re

from .._files import InputError
from .compression import Compression
from .compression import compression as compression_named
from .relaying.allowed import check_relaying
from .scheduling import Transmission
from .synchronization import Synchronization

_AUTO = re.compile(r"^\s*auto\b(\s*\(\s*\))?")
_PAST_ONE_ROOT = ("multigps", "tsengine")
"""Rules by which changes travel over other links than those between the sites and one root."""


def written_compression(synchronization: Synchronization, text: str) -> str:
    """Returns a compression without `auto` where nobody plans: it is `none` there, with the same rules."""
    if synchronization.is_planned or not compression_named(text).is_planned:
        return text
    return _AUTO.sub("none", text)


def check_choices(
    synchronization: Synchronization,
    compression: Compression,
    transmission: Transmission,
    num_accepting: int,
) -> None:
    """Holds a synchronisation, a compression and a transmission against each other and a topology.

    Args:
        synchronization: how the sites keep in step.
        compression: how values travel between sites.
        transmission: in which pieces and in what order.
        num_accepting: sites of the topology that accept others.

    Raises:
        InputError: they do not go together; names both, and what is allowed.
    """
    if compression.is_planned and synchronization.is_planned and "dgt" in transmission.rules:
        raise InputError(
            "transmission rule dgt with compression 'auto': blocks are not encoded as planned, allowed: a "
            "compression that has a name of its own, such as none or quantized"
        )
    ways = [rule for rule in _PAST_ONE_ROOT if rule in transmission.rules]
    if synchronization.is_planned and ways:
        raise InputError(
            f"transmission rule {ways[0]} with synchronization 'auto': it measures the links to one root "
            "alone, allowed: one whose steps are given, such as hfa(k1=20)"
        )
    check_relaying(transmission, synchronization, accepting=num_accepting > 0)
    if transmission.multigps is not None:
        transmission.multigps.check_sites(num_accepting)
